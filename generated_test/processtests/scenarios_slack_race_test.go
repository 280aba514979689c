//go:build race

package processtests_test

import "time"

const slack = time.Second // processes start about ten times as slowly
