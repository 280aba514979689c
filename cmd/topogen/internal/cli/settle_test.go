package cli

import (
	"errors"
	"io"
	"testing"

	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/spec/finding"
)

// TestUntilSettled: what changed while a build ran is a reason to begin again, a
// bounded number of times; other findings and errors are not.
func TestUntilSettled(t *testing.T) {
	for _, c := range []struct {
		name      string
		overtaken int // so many of the first attempts
		wrong     bool
		err       error
		fresh     bool
		attempts  int
		findings  int
	}{
		{name: "nothing changes", attempts: 1},
		{name: "once", overtaken: 1, attempts: 2},
		{name: "all but the last time", overtaken: attemptsMax - 1, attempts: attemptsMax},
		{name: "always", overtaken: attemptsMax + 1, attempts: attemptsMax, findings: 1},
		{name: "what is wrong", wrong: true, attempts: 1, findings: 1},
		{name: "once, and then what is wrong", overtaken: 1, wrong: true, attempts: 2, findings: 1},
		{name: "an error", err: io.ErrUnexpectedEOF, attempts: 1},
		{name: "nothing to do", fresh: true, attempts: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, attempts := &report{}, 0
			var last *compilation
			got, err := untilSettled(r, func(before *compilation) (*compilation, error) {
				if before != last {
					t.Error("the attempt before is not told")
				}
				if attempts++; c.fresh || c.err != nil {
					return nil, c.err
				}
				last = &compilation{report: r}
				if attempts <= c.overtaken {
					r.add(write.ChangedInput("topology.yml"))
				} else if c.wrong {
					r.add(finding.New("TG201", "topology.yml", finding.Range{}, "", "wrong", ""))
				}
				return last, nil
			})
			if attempts != c.attempts || len(r.findings) != c.findings || !errors.Is(err, c.err) || got != last {
				t.Errorf("%d attempts, findings %v, error %v", attempts, r.findings, err)
			}
		})
	}
}
