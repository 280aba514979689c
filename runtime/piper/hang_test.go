package piper_test

import "time"

// hangAfter is how long a topology may run before a test reports a hang. It is far
// longer than any test needs, even on a busy computer.
const hangAfter = 90 * time.Second
