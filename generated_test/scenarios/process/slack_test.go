//go:build !race

package process

import "time"

const slack = 200 * time.Millisecond // for the start of a process on a busy host
