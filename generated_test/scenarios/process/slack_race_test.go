//go:build race

package process

import "time"

const slack = time.Second // processes start some ten times as slowly
