// Mutants shows that the tests find bugs. A mutant is a deliberate bug: a patch of a few
// lines that is applied to no file of the repository, but to a copy for one build of the
// tests. At least one of its tests must fail.
//
//	go run ./internal/cmd/mutants [flags] [package...]
//
// The mutants of a package are in its file testdata/mutants.txt. Without packages all
// lists of the module are used. A list looks like this:
//
//	# The first lines may state the tests and seeds for all mutants of the list.
//	tests ^TestRandomFaults$
//	seeds 300
//
//	== promises-before-sync: messages are sent before the promised data is durable
//	effects.go
//	-		if promises(m) {
//	+		if false {
//
//	== a-hard-one: text that says what the package then does wrong
//	tests ./runtime/raft ^TestALeaseEnds$
//	seeds 1000
//	lease.go
//	-	removed line
//	+	added line
//	another.go
//	-	removed line
//
// The removed lines must occur in the file exactly once. Removed lines that follow added
// lines begin another change of the same file. Optional lines are:
//
//	tests [./PACKAGE] REGEXP  the tests that catch the mutant, with | between several;
//	                          otherwise all tests of the package
//	seeds N                   run N seeds of these tests (TOPOGEN_SEEDS)
//	hangs                     the tests may hang
//	landing                   the tests run as in .ci/run, and the programs that they build
//	                          contain the mutant too
//	survives REASON           no test can catch the mutant, which is not run
//
// A mutant is caught if a test fails or panics. With the line "hangs" it is also caught if
// the tests run for more than 20 s (-hang). Without this line, tests that run for more than
// 5 minutes do not catch the mutant. It is an error if
//
//   - the mutant does not apply or compile,
//   - the test program fails, but no test does,
//   - the same tests with the same seeds fail without the mutant,
//   - tests that may hang take more than a third of -hang without the mutant.
//
// After an error or a mutant that is not caught the exit status is 1.
//
// With -branches, the mutants are the branches of the compiler: each condition of an if
// becomes false, and each case of a switch becomes empty. All tests must pass without a
// change first. If no test needs a branch, add a case, or remove the branch.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, ".", os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case !ok:
		stop()
		os.Exit(1)
	}
}

// options are the flags of the command.
type options struct {
	check, branches bool
	sample          int
	seed            uint64
	name            *regexp.Regexp
	parallel        int
	hang            time.Duration
}

func parse(args []string, out io.Writer) (o options, packages []string, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.BoolVar(&o.check, "check", false, "check the lists, and run no test")
	flags.BoolVar(&o.branches, "branches", false, "disable each branch of the compiler in the given packages, instead of using the lists")
	flags.IntVar(&o.sample, "sample", 0, "run `N` random mutants, spread over all packages")
	flags.Uint64Var(&o.seed, "seed", 0, "repeat the sample that has printed this `SEED`")
	name := flags.String("run", "", "run the mutants whose names match `REGEXP`")
	flags.DurationVar(&o.hang, "hang", 20*time.Second, "after this time tests with the line \"hangs\" do hang")
	flags.IntVar(&o.parallel, "p", runtime.GOMAXPROCS(0), "build and run `N` test programs at a time")
	if err := flags.Parse(args); err != nil {
		return o, nil, err
	}
	if o.name, err = regexp.Compile(*name); err != nil {
		return o, nil, err
	}
	if o.branches && flags.NArg() == 0 {
		return o, nil, errors.New("-branches requires packages, for example ./spec ./gen/plan")
	}
	o.parallel = max(o.parallel, 1)
	return o, flags.Args(), nil
}

// run runs the command in a folder. It reports whether all mutants are caught.
func run(ctx context.Context, dir string, args []string, out io.Writer) (ok bool, err error) {
	o, packages, err := parse(args, out)
	if err != nil {
		return false, err
	}
	m, err := findModule(dir)
	if err != nil {
		return false, err
	}
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temp)
	m.temp, m.hang = temp, o.hang
	var jobs []job
	if o.branches {
		all, err := m.branches(packages)
		if err != nil {
			return false, err
		}
		jobs = m.branchJobs(choose(all, o, out))
	} else {
		lists, err := m.lists(packages)
		if err != nil {
			return false, err
		}
		if o.check {
			return m.check(lists, out), nil
		}
		var all []*mutant
		for _, l := range lists {
			all = append(all, l.mutants...)
		}
		jobs = m.mutantJobs(choose(all, o, out))
	}
	if len(jobs) == 0 {
		return false, errors.New("no mutant matches")
	}
	if o.branches {
		if err := m.checkRounds(ctx, rounds); err != nil {
			return false, err
		}
	}
	return runAll(ctx, jobs, o.parallel, out), nil
}

// module is the Go module with the mutants.
type module struct {
	root string // absolute
	dir  string // the absolute folder of the command, to which packages are relative
	temp string // a folder for overlays and test programs
	hang time.Duration
}

func findModule(dir string) (*module, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return &module{root: root, dir: dir}, nil
		}
		if root == filepath.Dir(root) {
			return nil, errors.New("the folder must be in a Go module: no go.mod found")
		}
	}
}

// relative returns the path of a package, relative to the root of the module.
func (m *module) relative(pkg string) (string, error) {
	path, err := filepath.Rel(m.root, filepath.Join(m.dir, pkg))
	if err != nil || strings.HasPrefix(path, "..") {
		return "", fmt.Errorf("the package %s is not in the module %s", pkg, m.root)
	}
	return filepath.ToSlash(path), nil
}
