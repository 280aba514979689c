package cli

import (
	"slices"

	"github.com/topogen/topogen/gen/write"
)

// attemptsMax is the number of attempts of a build whose inputs keep changing. An editor
// or another build ends before that. A program that changes files all the time must not
// make a build run forever.
const attemptsMax = 5

// untilSettled calls attempt, with an empty report and the previous attempt, until no
// input changed during the attempt and no other build replaced its output. After
// attemptsMax calls, the report keeps the finding about the change.
func untilSettled(r *report, attempt func(before *compilation) (*compilation, error)) (c *compilation, err error) {
	for n := 1; ; n++ {
		r.findings = nil
		if c != nil {
			c.before = nil // one earlier attempt is enough to keep in memory
		}
		if c, err = attempt(c); err != nil || c == nil {
			return c, err
		}
		c.reportChange()
		if n == attemptsMax || !slices.ContainsFunc(r.findings, write.Overtaken) {
			return c, nil
		}
	}
}

// reportChange adds a finding if an input has changed and there are other findings,
// because these may be about the old input.
func (c *compilation) reportChange() {
	if c.report.failed() && !slices.ContainsFunc(c.report.findings, write.Overtaken) {
		if path := c.changed(); path != "" {
			c.report.add(write.ChangedInput(path))
		}
	}
}
