package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/faulty"
)

// TestHostileErrors: errors whose methods misbehave end Run like other errors.
func TestHostileErrors(t *testing.T) {
	for name, err := range map[string]error{
		"Is": faulty.Error("Is"), "Unwrap": faulty.Error("Unwrap"), "Error": faulty.Error("Error"), "itself": faulty.Error("itself"),
		"nil": (*Error)(nil), "nil within": fmt.Errorf("x: %w", (*Error)(nil)),
	} {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprint(name, panics), func(t *testing.T) {
				j := &job{first: [][]int{{0}, {1}}}
				j.process = func(_ context.Context, shard int, _ bool) error {
					if shard == 0 {
						return nil
					}
					if panics {
						panic(err)
					}
					return err
				}
				got := inTime(t, time.Hour, &Sharder[*job]{Controller: j})
				e, ok := got.(interface{ Unwrap() []error })
				if !ok || len(e.Unwrap()) != 1 {
					t.Fatalf("Run returned %v", got)
				}
				failure, ok := e.Unwrap()[0].(*Error)
				if !ok || failure.Method != "ProcessShard" || failure.Shard != 1 || panics != (failure.Stack != nil) {
					t.Errorf("Run returned %v", got)
				}
				if !panics && errors.Is(got, Done) { // the methods of a panic's value are not called
					t.Error("errors.Is matches Done")
				}
			})
		}
	}
}

// TestAHostileOnError: Run ends with an error, however OnError misbehaves.
func TestAHostileOnError(t *testing.T) {
	for name, c := range map[string]struct {
		onError func(*Error) error
		want    string
	}{
		"panic":  {func(*Error) error { panic("no") }, "shard: OnError of shard 0 on worker 0: panic: no"},
		"goexit": {func(*Error) error { runtime.Goexit(); return nil }, "shard: OnError of shard 0 on worker 0: the method ended its goroutine"},
		"nil":    {func(*Error) error { var e *Error; return e }, "a nil *Error"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{first: [][]int{{0}, {1}}}
			j.process = func(_ context.Context, shard int, _ bool) error {
				if shard == 0 {
					return errBoom
				}
				return nil
			}
			err := inTime(t, time.Hour, &Sharder[*job]{Controller: j, OnError: c.onError})
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, Done) {
				t.Errorf("Run returned %v", err)
			}
		})
	}
}

// beginner is a controller that fails before the workers start.
type beginner struct {
	job
	max func() int
	at  func() ([][]int, error)
}

func (b *beginner) MaxWorkers() int                      { return b.max() }
func (b *beginner) InitialSharding(int) ([][]int, error) { return b.at() }

func TestAControllerThatCannotBegin(t *testing.T) {
	two := func() int { return 2 }
	for name, c := range map[string]struct {
		controller Controller
		want       string
	}{
		"MaxWorkers panics":      {&beginner{max: func() int { panic("no") }}, "shard: MaxWorkers: panic: no\n"},
		"InitialSharding panics": {&beginner{max: two, at: func() ([][]int, error) { panic(errBoom) }}, "shard: InitialSharding: panic: boom\n"},
		"InitialSharding fails":  {&beginner{max: two, at: func() ([][]int, error) { return nil, faulty.Error("Is") }}, "shard: InitialSharding: faulty (an error of type"},
		"no controller":          {nil, "shard: MaxWorkers: panic: runtime error: invalid memory address"},
		"RoundRobin, no workers": {&beginner{max: two, at: func() ([][]int, error) { return RoundRobin(1, 0), nil }}, "panic: shard: 1 shards cannot be given to 0 workers"},
		"RoundRobin of less":     {&beginner{max: two, at: func() ([][]int, error) { return RoundRobin(-1, 1), nil }}, "panic: shard: -1 shards cannot be given to 1 workers"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Sharder[Controller]{Controller: c.controller}).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Run returned %v", err)
			}
		})
	}
}
