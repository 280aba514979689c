package suite

import (
	"io"
	"log/slog"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/bench/topologies/sleepers"
	"github.com/topogen/topogen/bench/work"
	"github.com/topogen/topogen/runtime/pool"
)

const (
	sleepersFor  = time.Second
	jobWork      = 500 * time.Nanosecond
	throughputOf = 0.9 // a goal: the throughput that the workers keep
)

// silent is the logger of pools that would warn about things that the benchmark does on
// purpose.
var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// SleepersShare is the share of their throughput that working instances keep while the
// handlers of others sleep. The two measurements are made one after the other.
func SleepersShare() (float64, error) {
	steps := work.Steps(jobWork)
	run := func(sleep bool) (int64, error) {
		return sleepers.Run(sleepersFor, steps, sleep, pool.Workers(2), pool.Logger(silent))
	}
	alone, err := run(false)
	if err != nil {
		return 0, err
	}
	beside, err := run(true)
	return float64(beside) / float64(alone), err
}

func asleep(e Effort) (Section, error) {
	s := Section{
		Title:   "Beside handlers that sleep",
		Note:    "A hundred instances work on two workers. Then a hundred more run beside them, whose handlers sleep for 50 ms in each call and are not declared `blocking`. The measurement lasts one second from the first sleep.",
		Columns: []string{"", "throughput of the working instances, compared with before"},
	}
	var shares []float64
	for range min(e.Rounds, 5) {
		share, err := SleepersShare()
		if err != nil {
			return s, err
		}
		shares = append(shares, share)
	}
	share := measure.Median(shares)
	s.Rows = [][]string{{"beside 100 sleepers", percent(share)}}
	s.Claims = []Claim{{"throughput beside 100 handlers that sleep 50 ms, on two workers", "≥ 90 %", percent(share), share >= throughputOf}}
	return s, nil
}
