package piper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

// errExited is the error of a process that has exited.
var errExited = errors.New("exited with code 0")

// exitedProcess is a process that exits with code 0 between two calls. It has exited when the channel
// is closed.
type exitedProcess chan struct{}

func (p exitedProcess) Done() <-chan struct{} { return p }
func (exitedProcess) Ended() (bool, error)    { return true, errExited }
func (exitedProcess) Ends(err error) bool     { return errors.Is(err, errExited) }
func (exitedProcess) Refuses(error) bool      { return false }
func (exitedProcess) Held() error             { return nil }
func (exitedProcess) Kill(error)              {}

// inProcess makes p run in the given process. After a restart p runs in a process that does not exit.
func inProcess(p proc, first exitedProcess) proc {
	p.watch = &piper.Watch{Attempts: 3}
	next := first
	p.init = func(c *cell, _ context.Context) error {
		c.Isolation().Attach(next)
		next = make(exitedProcess)
		return nil
	}
	return p
}

// TestProcessThatExitsBetweenCalls has a process that exits with code 0 between two calls. If it has
// inputs, holds work or has Finish, the exit is a failure, because something would be lost.
func TestProcessThatExitsBetweenCalls(t *testing.T) {
	const messages = 20
	for name, c := range map[string]struct {
		policy   supervise.Policy
		source   bool
		hold     bool
		finish   bool
		restarts uint64
		calls    int
		want     error
	}{
		"receiver":             {policy: supervise.OnFailure, restarts: 1, calls: messages},
		"receiver, no restart": {policy: supervise.Never, calls: 3, want: errExited},
		"source":               {policy: supervise.OnFailure, source: true, calls: 3},
		"source, no restart":   {policy: supervise.Never, source: true, calls: 3},
		"source with holds":    {policy: supervise.Never, source: true, hold: true, calls: 3, want: errExited},
		"source with Finish":   {policy: supervise.Never, source: true, finish: true, calls: 3, want: errExited},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, calls := make(exitedProcess), 0
				call := func() {
					if calls++; calls == 3 {
						close(first)
					}
				}
				feed := proc{ping: func(c *cell) error {
					if c.calls == messages {
						return topo.Done
					}
					return errors.Join(c.send(0, 0, message{}), topo.Idle) // time passes: the exit is noticed before the next message
				}}
				exits := proc{receive: func(*cell, *message) error { call(); return nil }}
				edges := []edge{{from: 0, to: 1}}
				if c.source {
					feed.ping, edges = nil, nil
					exits = proc{ping: func(cell *cell) error {
						if call(); c.hold && calls == 1 {
							topo.Hold(cell.ctx)
						}
						return topo.Idle
					}}
				}
				if c.finish {
					exits.finish = func(*cell) error { return nil }
				}
				v := supervise.New(supervise.Spec{Processors: []supervise.Processor{{}, restarted("p1", c.policy, 0)}})
				top := supervised(t, v, []proc{feed, inProcess(exits, first)}, edges)
				err := top.run(t, t.Context())
				f := top.pool.Snapshot().Faults
				if !errors.Is(err, c.want) || c.want == nil && err != nil || calls != c.calls || f.Restarts != c.restarts || f.Dropped != 0 {
					t.Errorf("Run returns %v, %d calls, %+v", err, calls, f)
				}
			})
		})
	}
}
