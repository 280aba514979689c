//go:build !topobug

package piper_test

import "time"

// hangAfter is how long a topology may run before a test takes it for hung: far
// more than any needs, on a machine that does other things.
const hangAfter = 90 * time.Second
