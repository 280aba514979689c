//go:build unix

package durable

import (
	"syscall"
	"time"
)

// cpuTime is the time for which this process has used a processor.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
