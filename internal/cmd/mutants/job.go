package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// job runs the tests with one mutant.
type job struct {
	pkg, name string
	run       func(context.Context) verdict
}

// verdict is the result of a job.
type verdict struct {
	kind kind
	text string
}

type kind string

const (
	caught    kind = "caught"
	notCaught kind = "NOT CAUGHT"
	failed    kind = "ERROR"
	survives  kind = "survives"
)

// runAll runs all jobs, and some at the same time. It reports whether all mutants are caught.
func runAll(ctx context.Context, jobs []job, parallel int, out io.Writer) bool {
	began := time.Now()
	queue := make(chan job, len(jobs))
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	var (
		workers  sync.WaitGroup
		mu       sync.Mutex
		done     int
		verdicts = map[kind]int{}
	)
	for range min(parallel, len(jobs)) {
		workers.Go(func() {
			for j := range queue {
				if ctx.Err() != nil {
					return
				}
				start := time.Now()
				v := j.run(ctx)
				mu.Lock()
				done++
				verdicts[v.kind]++
				fmt.Fprintf(out, "%*d/%d %-10s %6.1f s  %s %s: %s\n", digits(len(jobs)), done, len(jobs), v.kind, time.Since(start).Seconds(), j.pkg, j.name, v.text)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	fmt.Fprintf(out, "%d mutants in %.0f s: %d caught, %d not caught, %d errors, %d that no test can catch\n",
		done, time.Since(began).Seconds(), verdicts[caught], verdicts[notCaught], verdicts[failed], verdicts[survives])
	return verdicts[notCaught]+verdicts[failed] == 0 && done == len(jobs)
}

func digits(n int) int { return len(fmt.Sprint(n)) }

// mutantJobs makes the jobs of some mutants.
func (m *module) mutantJobs(mutants []*mutant) (jobs []job) {
	unchanged := baselines{}
	for _, mutant := range mutants {
		j := job{pkg: mutant.pkg, name: mutant.name}
		if mutant.canBeCaught() {
			b := unchanged.add(mutant.tests)
			j.run = func(ctx context.Context) verdict { return m.judge(ctx, mutant, b) }
		} else {
			j.run = func(context.Context) verdict { return verdict{survives, mutant.survives} }
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// judge runs the tests with a mutant.
func (m *module) judge(ctx context.Context, mutant *mutant, b *baseline) verdict {
	if err := b.check(ctx, m); err != nil {
		return verdict{failed, err.Error()}
	}
	changed, err := mutant.apply(m.root)
	if err != nil {
		return verdict{failed, err.Error()}
	}
	limit := testLimit
	if mutant.tests.hang {
		limit = m.hang
	}
	got, err := m.try(ctx, changed, mutant.tests, limit)
	switch {
	case err != nil:
		return verdict{failed, err.Error()}
	case got.timedOut && mutant.tests.hang:
		return verdict{caught, fmt.Sprintf("%s hangs for %v", got.test, limit)}
	case got.timedOut:
		return verdict{notCaught, fmt.Sprintf("%s has not ended after %v", got.test, limit)}
	case got.failed:
		return verdict{caught, got.test}
	default:
		return verdict{notCaught, fmt.Sprintf("%s\n%s", mutant.effect, shorten(got.output))}
	}
}

// try builds and runs tests with an overlay.
func (m *module) try(ctx context.Context, changed overlay, t tests, limit time.Duration) (outcome, error) {
	dir, err := m.write(changed)
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(dir)
	program, err := m.build(ctx, dir, t.pkg)
	if err != nil {
		return outcome{}, err
	}
	return m.run(ctx, program, t, limit)
}

// baselines are the runs without a mutant, by what their tests have in common.
type baselines map[tests]*baseline

// add returns the baseline of some tests. The tests of a package share one
// baseline. Tests with a number of seeds, tests that run as in .ci/run, and tests that may hang
// have separate baselines. Tests that may hang are timed.
func (all baselines) add(t tests) *baseline {
	common := tests{pkg: t.pkg}
	if t.seeds > 0 || t.hang || t.landing {
		common = t
		common.seeds = min(t.seeds, 1)
	}
	b := all[common]
	if b == nil {
		b = &baseline{tests: common}
		all[common] = b
	}
	b.tests.seeds = max(b.tests.seeds, t.seeds)
	b.all = b.all || t.regexp == ""
	b.regexp = append(b.regexp, t.regexp)
	return b
}

// baseline runs the tests of some mutants of a package, once and without a mutant.
type baseline struct {
	tests  tests    // with the most seeds of all mutants: a smaller number is a part of them
	all    bool     // a mutant names no tests
	regexp []string // of the tests

	once sync.Once
	err  error
}

// baselineLimit is longer than testLimit: all seeds run, and not only those until a failure.
const baselineLimit = 3 * testLimit

// check returns an error if the tests fail. Tests that may hang must end in a third of the
// time, so that a busy computer does not look like a hang.
func (b *baseline) check(ctx context.Context, m *module) error {
	var output []byte // the first mutant shows it
	b.once.Do(func() {
		t, limit, why := b.tests, baselineLimit, ""
		if t.regexp = strings.Join(b.regexp, "|"); b.all {
			t.regexp = ""
		}
		if t.hang {
			limit, why = m.hang/3, ", a third of -hang: a slow run would count as a hang"
		}
		got, err := m.try(ctx, nil, t, limit)
		switch {
		case err != nil:
			b.err = fmt.Errorf("%s without a mutant: %w", t.pkg, err)
		case got.timedOut:
			b.err = fmt.Errorf("%s takes more than %v without a mutant%s", got.test, limit, why)
		case got.failed:
			b.err = fmt.Errorf("%s fails without a mutant", got.test)
			output = append([]byte("\n"), shorten(got.output)...)
		}
	})
	if len(output) > 0 {
		return fmt.Errorf("%w%s", b.err, output)
	}
	return b.err
}
