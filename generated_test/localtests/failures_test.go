package localtests_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/failures"
	"github.com/topogen/topogen/runtime/pool"
)

var errFailures = errors.New("it fails")

// failuresStory runs the topology in virtual time, with hooks that fail where fails says
// so, and returns what was called.
type failuresStory struct {
	mu     sync.Mutex
	called []string
	fails  func(name string, n int) error
	counts map[string]int
}

func (s *failuresStory) hook(name string) error {
	s.mu.Lock()
	s.called = append(s.called, name)
	s.counts[name]++
	n := s.counts[name]
	s.mu.Unlock()
	if s.fails == nil {
		return nil
	}
	return s.fails(name, n)
}

func (s *failuresStory) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

// tellFailures runs the topology for a time, in which act may do something.
func tellFailures(t *testing.T, fails func(name string, n int) error, last time.Duration, act func(s *failuresStory, top *failures.Topology)) (*failuresStory, *failures.Topology, error) {
	t.Helper()
	s := &failuresStory{fails: fails, counts: make(map[string]int)}
	failures.Hooks.F = s.hook
	defer func() { failures.Hooks.F = nil }()
	top, err := failures.New(failures.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), last)
	defer cancel()
	var acting sync.WaitGroup
	if act != nil {
		acting.Go(func() { act(s, top) })
	}
	err = top.Run(ctx)
	acting.Wait()
	return s, top, err
}

func TestFailuresARestartRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, top, err := tellFailures(t, func(name string, n int) error {
			if name == "camera" {
				time.Sleep(10 * time.Millisecond) // the duration of a frame
				if n%50 == 0 && n <= 100 {
					return errFailures
				}
			}
			return nil
		}, 10*time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := top.Snapshot().Faults.Restarts; n != 4 { // lidar follows camera in the group
			t.Errorf("%d restarts", n)
		}
		if s.count("camera close") != 3 || s.count("camera init") != 3 {
			t.Errorf("closed %d times, made %d times", s.count("camera close"), s.count("camera init"))
		}
		if n := s.count("detector hears camera"); n != 2 {
			t.Errorf("the detector heard of %d restarts", n)
		}
		if n := s.count("planner hears lidar"); n != 4 {
			t.Errorf("the planners heard of %d restarts", n)
		}
		if s.count("camera") < 900 {
			t.Errorf("%d frames", s.count("camera"))
		}
	})
}

func TestFailuresAPanicRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, top, err := tellFailures(t, func(name string, n int) error {
			if name == "detector" && n == 3 {
				panic("three")
			}
			if name == "camera" {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}, time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := top.Snapshot().Faults
		if f.Restarts != 1 || f.DeadLetters != 0 {
			t.Errorf("%+v", f)
		}
		if n := s.count("planner hears detector"); n != 2 {
			t.Errorf("the planners heard of %d restarts", n)
		}
	})
}

func TestFailuresAHangIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		s, top, err := tellFailures(t, func(name string, n int) error {
			switch {
			case name == "detector" && n == 3:
				<-forever
			case name == "camera":
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		}, 5*time.Second, nil)
		close(forever)
		synctest.Wait()
		if err != nil {
			t.Fatal(err)
		}
		f := top.Snapshot().Faults
		if f.Restarts != 1 || f.HealthCheckKills != 1 || f.Abandoned != 1 || f.DeadLetters != 0 {
			t.Errorf("%+v", f)
		}
		if s.count("detector") < 300 || s.count("detection") < 300 {
			t.Errorf("%d frames, %d detections", s.count("detector"), s.count("detection"))
		}
		if n := s.count("closed detector -> planner: Detection"); n == 0 {
			t.Error("no planner heard that its input was silent")
		}
		// At the end each of the two planners gets InputClosed.
		if a, b := s.count("closed detector -> planner: Detection"), s.count("recovered detector -> planner: Detection"); a != b+2 {
			t.Errorf("%d closed, %d recovered", a, b)
		}
	})
}

func TestFailuresALimitIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, top, err := tellFailures(t, func(name string, n int) error {
			if name == "camera" {
				return errFailures
			}
			return nil
		}, 20*time.Second, nil)
		if !errors.Is(err, pool.ErrGaveUp) || !errors.Is(err, errFailures) {
			t.Fatal(err)
		}
		if s.count("camera") != 4 || s.count("camera init") != 4 || s.count("camera close") != 4 {
			t.Errorf("%v", s.counts)
		}
		if top.Snapshot().Faults.Restarts < 3 {
			t.Errorf("%+v", top.Snapshot().Faults)
		}
	})
}

func TestFailuresAttemptsAndDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, top, err := tellFailures(t, func(name string, n int) error {
			switch name {
			case "camera":
				time.Sleep(10 * time.Millisecond)
			case "detector":
				if n == 5 || n == 10 || n == 11 { // 5 works at the second attempt, the others do not
					return errFailures
				}
			}
			return nil
		}, time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		letters := top.Morgue(0).Letters
		if len(letters) != 1 || s.count("letter") != 1 || top.Snapshot().Faults.DeadLetters != 1 {
			t.Fatalf("%d letters", len(letters))
		}
		d := letters[0]
		f, ok := failures.DeadLetterCameraDetectorFrame(d)
		if !ok || f.N != 9 || d.Attempts != 2 || !errors.Is(d.Err, errFailures) || d.Processor != "detector" || d.Message != "Frame" {
			t.Errorf("%+v %+v %v", d, f, ok)
		}
		if _, ok := failures.DeadLetterApiDetectorQuery(d); ok {
			t.Error("it is a query too")
		}
	})
}

func TestFailuresAskingOneThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []string
		_, _, err := tellFailures(t, func(name string, n int) error {
			switch {
			case name == "camera":
				time.Sleep(10 * time.Millisecond)
			case name == "query" && n < 4: // the asker's come later
				return errFailures
			}
			return nil
		}, 900*time.Millisecond, func(s *failuresStory, top *failures.Topology) {
			for range 2 {
				a, err := top.Api().AskQuery(t.Context(), failures.Query{Words: []string{"x", "y"}})
				if err != nil {
					answers = append(answers, err.Error())
				} else {
					answers = append(answers, strings.Repeat("n", a.N))
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"topo: the Ask failed: it fails", "nn"}; !slices.Equal(answers, want) {
			t.Errorf("%q", answers)
		}
	})
}
