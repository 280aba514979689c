package piper_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// hungProcess is a process that ends only when it is killed.
type hungProcess struct {
	killed chan struct{}
	cause  *error // why it was killed
}

func (p hungProcess) Done() <-chan struct{} { return p.killed }
func (hungProcess) Ended() (bool, error)    { return false, errFailed }
func (hungProcess) Ends(err error) bool     { return errors.Is(err, errFailed) }
func (hungProcess) Refuses(error) bool      { return false }
func (hungProcess) Held() error             { return nil }
func (p hungProcess) Kill(cause error)      { *p.cause = cause; close(p.killed) }

// TestAProcessThatHangsUnderTheStepper checks that a process is killed after the health timeout,
// which passes in real time, and that the error names the cause. The clock of the Stepper does not move.
func TestAProcessThatHangsUnderTheStepper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hungProcess{make(chan struct{}), new(error)}
		time.AfterFunc(time.Minute, func() {
			select {
			case <-p.killed:
			default:
				t.Error("the process is not killed")
				p.Kill(nil)
			}
		})
		top := build(t, []proc{
			feed(0, 1, 1),
			{
				watch:   &piper.Watch{Timeout: time.Second, Attempts: 1},
				init:    func(c *cell, _ context.Context) error { c.Isolation().Attach(p); return nil },
				receive: func(*cell, *message) error { <-p.killed; return fmt.Errorf("%w: %w", errFailed, *p.cause) },
			},
		}, []edge{{from: 0, to: 1}})
		s, began := top.pool.Stepper(1), time.Now()
		at := s.Now()
		if err := s.Run(); !errors.Is(err, errFailed) || !errors.Is(err, piper.ErrHung) {
			t.Errorf("Run returns %v", err)
		}
		if d := time.Since(began); d < time.Second || d > 2*time.Second || !s.Now().Equal(at) {
			t.Errorf("the call took %v, and the clock of the Stepper went from %v to %v", d, at, s.Now())
		}
		if n := top.pool.Snapshot().Faults.HealthCheckKills; n != 1 {
			t.Errorf("%d processes were killed", n)
		}
	})
}
