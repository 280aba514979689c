package cli

import (
	"errors"
	"io"
	"testing"

	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/spec/finding"
)

// TestUntilSettled: a build starts again if its inputs changed while it ran, a bounded
// number of times. It does not start again after other findings and errors.
func TestUntilSettled(t *testing.T) {
	for _, c := range []struct {
		name      string
		overtaken int  // number of the first attempts during which inputs change
		wrong     bool // later attempts have another finding
		err       error
		fresh     bool // there is nothing to build
		attempts  int
		findings  int
	}{
		{name: "nothing changes", attempts: 1},
		{name: "once", overtaken: 1, attempts: 2},
		{name: "all but the last time", overtaken: attemptsMax - 1, attempts: attemptsMax},
		{name: "always", overtaken: attemptsMax + 1, attempts: attemptsMax, findings: 1},
		{name: "another finding", wrong: true, attempts: 1, findings: 1},
		{name: "once, then another finding", overtaken: 1, wrong: true, attempts: 2, findings: 1},
		{name: "an error", err: io.ErrUnexpectedEOF, attempts: 1},
		{name: "nothing to do", fresh: true, attempts: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, attempts := &report{}, 0
			var last *compilation
			got, err := untilSettled(r, func(before *compilation) (*compilation, error) {
				if before != last {
					t.Error("attempt did not get the previous attempt")
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
