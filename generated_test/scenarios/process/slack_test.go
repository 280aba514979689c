//go:build !race

package process

import "time"

const slack = 200 * time.Millisecond // for a process to start on a machine that has other things to do
