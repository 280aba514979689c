//go:build topobug

package piper_test

import "time"

// hangAfter is short because some deliberate bugs make a topology hang.
const hangAfter = 5 * time.Second
