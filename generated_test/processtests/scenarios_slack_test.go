//go:build !race

package processtests_test

import "time"

const slack = 200 * time.Millisecond // for the start of a process on a busy host
