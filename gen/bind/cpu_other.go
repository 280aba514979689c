//go:build !unix

package bind

import "time"

var started = time.Now()

// cpuTime is how long this process has been there, which has to do.
func cpuTime() time.Duration { return time.Since(started) }
