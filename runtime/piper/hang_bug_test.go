//go:build topobug

package piper_test

import "time"

// hangAfter is short where hanging is what a deliberate bug does.
const hangAfter = 5 * time.Second
