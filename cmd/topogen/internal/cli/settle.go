package cli

import (
	"slices"

	"github.com/topogen/topogen/gen/write"
)

// attemptsMax is how often a build reads everything while files change under it. An
// editor or another build is done before that; a program that never stops must not
// keep builds going for ever.
const attemptsMax = 5

// untilSettled calls attempt, with an empty report and the attempt before, until no
// input has changed while it ran and no other build has replaced what it wrote. After
// attemptsMax calls the finding that says so stays in the report.
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

// reportChange adds a finding where there are others, an input has changed, and nothing
// has said so: the others may be about the state before.
func (c *compilation) reportChange() {
	if c.report.failed() && !slices.ContainsFunc(c.report.findings, write.Overtaken) {
		if path := c.changed(); path != "" {
			c.report.add(write.ChangedInput(path))
		}
	}
}
