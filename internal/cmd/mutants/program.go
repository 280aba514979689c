package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	testLimit = 5 * time.Minute  // of tests that do not hang; after it they have not caught the mutant
	killAfter = 10 * time.Second // after a limit the process is killed, if it does not end itself
)

// overlay has the contents of the files that a build uses instead of those on the disk.
type overlay map[string]string

// write writes an overlay for the go command into a new folder.
func (m *module) write(o overlay) (dir string, err error) {
	if dir, err = os.MkdirTemp(m.temp, "mutant"); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range o {
		file := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return dir, err
		}
		replace[name] = file
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return dir, err
	}
	return dir, os.WriteFile(filepath.Join(dir, overlayFile), b, 0o600)
}

const overlayFile = "overlay.json"

// build builds the test program of a package, with the overlay in dir.
func (m *module) build(ctx context.Context, dir, pkg string) (program string, err error) {
	program = filepath.Join(dir, "package.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-overlay", filepath.Join(dir, overlayFile), "-o", program, "./"+pkg)
	build.Dir = m.root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	return program, nil
}

// outcome says how a test program has ended.
type outcome struct {
	failed   bool
	timedOut bool
	test     string // the first test that has failed
	output   []byte
}

// run runs a test program.
func (m *module) run(ctx context.Context, program string, t tests, limit time.Duration) (outcome, error) {
	limited, cancel := context.WithTimeout(ctx, limit+killAfter)
	defer cancel()
	test := exec.CommandContext(limited, program, "-test.run="+t.regexp, "-test.v", "-test.failfast", "-test.timeout="+limit.String())
	test.Dir = filepath.Join(m.root, t.pkg)
	test.Env = environment(t, filepath.Join(filepath.Dir(program), overlayFile))
	test.WaitDelay = time.Second // children of the tests may keep the output open
	out, err := test.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the program has ended without an error
	}
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(out, []byte("testing: warning: no tests to run")):
		return outcome{}, fmt.Errorf("the package %s has no test that matches %s", t.pkg, t.regexp)
	case err == nil:
		return outcome{output: out}, nil
	case ctx.Err() != nil:
		return outcome{}, ctx.Err()
	case limited.Err() != nil:
		return outcome{failed: true, timedOut: true, test: lastTest(out), output: out}, nil
	case errors.As(err, &exit) && exit.ExitCode() > 0 && failure.Match(out):
		return outcome{true, bytes.Contains(out, []byte("panic: test timed out after")), failedTest(out), out}, nil
	default:
		return outcome{}, fmt.Errorf("the test program has ended, but no test has failed: %w\n%s", err, shorten(out))
	}
}

// failure matches the output of a test that fails or panics. Without it the program may have
// failed before or after the tests, or was killed, which says nothing about the mutant.
var failure = regexp.MustCompile(`(?m)^\s*(--- FAIL|panic:|fatal error:)`)

// environment returns the environment of a quick run or of a landing run. In a landing run, go
// commands that tests start use the overlay too. Rapid must not write a file about a failure, because
// the file would remain in the folder of the package.
func environment(t tests, overlay string) []string {
	env := append(os.Environ(), "TOPOGEN_SPEED=", "TOPOGEN_SEED=", "TOPOGEN_SEEDS=", "RAPID_NOFAILFILE=true")
	if t.seeds > 0 {
		env = append(env, "TOPOGEN_SEEDS="+strconv.Itoa(t.seeds))
	}
	if t.landing {
		env = append(env, "TOPOGEN_SPEED=landing", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	return env
}

// failedTest returns the name of the first test that has failed.
func failedTest(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	return lastTest(out)
}

// lastTest returns the name of the test that ran last. A panic of another goroutine names
// no test.
func lastTest(out []byte) (name string) {
	for line := range strings.Lines(string(out)) {
		for _, prefix := range []string{"=== RUN ", "=== CONT "} {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				name = strings.TrimSpace(rest)
			}
		}
	}
	return name
}

// shorten removes the tests that pass from an output, and the beginning of a long output.
func shorten(out []byte) []byte {
	const most = 3000
	var rest []byte
	for line := range bytes.Lines(out) {
		text := bytes.TrimSpace(line)
		if !bytes.HasPrefix(text, []byte("=== ")) && !bytes.HasPrefix(text, []byte("--- PASS")) {
			rest = append(rest, line...)
		}
	}
	return rest[max(0, len(rest)-most):]
}
