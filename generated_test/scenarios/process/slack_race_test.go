//go:build race

package process

import "time"

const slack = time.Second // processes start about ten times as slowly
