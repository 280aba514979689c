// Package speed says how long the tests of a run may take.
//
// A run has one of three speeds. CONTRIBUTING.md has the rule for each:
//
//	quick    go test ./...   fixed seeds, virtual time, in memory: well under a second for each test
//	landing  .ci/run         also real processes, kills, examples, and random seeds
//	long     .ci/long        also tests with a budget of minutes or 10,000 seeds
//
// The environment variable TOPOGEN_SPEED selects the speed; without it a run is quick.
// Tests ask this package, and never read the variable themselves:
//
//	speed.Landing(t)                    // skips the test in a quick run
//	kills := speed.Pick(t, 2, 20, 1000) // the amount for this run
//	first, end := speed.Seeds(t, 10, 150, 10_000)
//	speed.NoRace(t)                     // one goroutine: the race detector finds nothing
//	updates := speed.Tenth(t, 1000)     // fewer with the race detector
//
// go test does not reuse the result of a run with another speed, because it compares the
// environment variables that a test has read.
package speed

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Environment variables.
const (
	Variable  = "TOPOGEN_SPEED"      // quick, landing or long
	OneSeed   = "TOPOGEN_SEED"       // the only seed to run
	AllSeeds  = "TOPOGEN_SEEDS"      // the number of seeds
	FirstSeed = "TOPOGEN_FIRST_SEED" // the first seed of a run that is not quick
)

type speed int

const (
	quick speed = iota
	landing
	long
)

// of returns the speed of this run.
func of(t testing.TB) speed {
	t.Helper()
	s, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read() (speed, error) {
	switch text := os.Getenv(Variable); text {
	case "", "quick":
		return quick, nil
	case "landing":
		return landing, nil
	case "long":
		return long, nil
	default:
		return 0, fmt.Errorf("%s must be quick, landing or long, got %q", Variable, text)
	}
}

// Landing skips a test in a quick run.
func Landing(t testing.TB) {
	t.Helper()
	if of(t) < landing {
		t.Skip("slow, part of .ci/run: set " + Variable + "=landing to run it")
	}
}

// Long skips a test unless the run is long.
func Long(t testing.TB) {
	t.Helper()
	if of(t) < long {
		t.Skip("slow, part of .ci/long: set " + Variable + "=long to run it")
	}
}

// NoRace skips a test in a run with the race detector. It is for tests with one goroutine and
// many steps, in which the race detector finds nothing and which it makes ten times slower,
// and for tests that measure memory. .ci/run first runs the packages with goroutines with
// the race detector, and then, without it, those tests that this function has skipped.
func NoRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("runs without the race detector")
	}
}

// Tenth returns n, or a tenth of it in a run with the race detector. It is for tests whose
// goroutines the race detector should watch, but that would take too long with it. With the
// race detector it also skips a subtest, so that .ci/run repeats the test with n and without the race detector.
func Tenth[N int | uint64](t *testing.T, n N) N {
	t.Helper()
	if !raceDetector {
		return n
	}
	t.Run("more", func(t *testing.T) { NoRace(t) })
	return (n + 9) / 10
}

// IsQuick reports whether the run is quick. A test that some computers cannot run may skip
// itself in a quick run and fail at the other speeds, as tests that use package failsync do.
// Tests that mount a disk skip themselves at each speed if the user may not mount.
func IsQuick(t testing.TB) bool {
	t.Helper()
	return of(t) == quick
}

// Parallel sets how many parallel tests of the package run at a time in a quick run and at
// other speeds, because tests compute more there. 0 means as many as there are cores, which is too
// few for tests that wait most of the time. The flag -parallel replaces the number. TestMain
// calls it before m.Run.
func Parallel(inQuick, inOthers int) {
	n := ForAll(inQuick, inOthers, inOthers)
	if n == 0 {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Pick returns the amount for the speed of this run: a number of repetitions, a length of
// time, a size.
func Pick[T any](t testing.TB, inQuick, inLanding, inLong T) T {
	t.Helper()
	return [...]T{inQuick, inLanding, inLong}[of(t)]
}

// ForAll is Pick for TestMain, which has no testing.TB.
func ForAll[T any](inQuick, inLanding, inLong T) T {
	s, err := read()
	if err != nil {
		panic(err)
	}
	return [...]T{inQuick, inLanding, inLong}[s]
}

// Seeds returns the seeds of a random test, from first to below end. Their number depends
// on the speed. A quick run always has the same seeds. Other runs have random seeds, unless
// TOPOGEN_FIRST_SEED is set.
//
// TOPOGEN_SEEDS replaces the number, and TOPOGEN_SEED selects one seed.
func Seeds(t testing.TB, inQuick, inLanding, inLong uint64) (first, end uint64) {
	t.Helper()
	n := Pick(t, inQuick, inLanding, inLong)
	if seed, ok := number(t, OneSeed); ok {
		return seed, seed + 1
	}
	if all, ok := number(t, AllSeeds); ok {
		n = all
	}
	if of(t) == quick {
		return 1, 1 + n
	}
	first, ok := number(t, FirstSeed)
	if !ok {
		first = rand.Uint64N(1 << 48)
	}
	return first, first + n
}

func number(t testing.TB, variable string) (n uint64, ok bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s must be a number, got %q", variable, text)
	}
	return n, true
}
