// Package durablefaults has a topology whose instances fail while executions wait for them.
package durablefaults

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/durable"
	"github.com/topogen/topogen/runtime/topo"
)

type Job struct {
	Name  string
	Sleep time.Duration
}

// Task has a step. With Stay it does not heed its context.
type Task struct{ Stay bool }

type Done struct{ Instance int64 }

type Poisoning struct{}

type Poison struct {
	Name  string
	Hangs bool
}

// Broken has methods that panic: the one that it names.
type Broken struct{ Method string }

func (b Broken) Account() string { return b.call("Account") }
func (b Broken) Group() string   { return b.call("Group") }

func (b Broken) call(method string) string {
	if b.Method == method {
		panic("no " + method)
	}
	return method
}

// Made is how many workers were made.
var Made atomic.Int64

// Release ends calls that hang.
var Release atomic.Pointer[chan struct{}]

// Entered receives when a task stays in its step.
var Entered = make(chan struct{})

type Worker struct{ number int64 }

func NewWorker() *Worker { return &Worker{Made.Add(1)} }

func (w *Worker) ReceiveJob(ctx durable.Context, m Job) (Done, error) {
	if err := durable.Sleep(ctx, m.Sleep); err != nil {
		return Done{}, err
	}
	return durable.Step(ctx, "work", func(context.Context) (Done, error) { return Done{w.number}, nil })
}

func (w *Worker) ReceiveBroken(durable.Context, Broken) (Done, error) { return Done{w.number}, nil }

func (w *Worker) ReceivePoison(m Poison) error {
	if m.Hangs {
		<-*Release.Load()
		return nil
	}
	return errors.New("poison")
}

type Fragile struct{}

func (Fragile) ReceiveTask(ctx durable.Context, m Task) error {
	_, err := durable.Step(ctx, "stay", func(context.Context) (int, error) {
		if m.Stay {
			Entered <- struct{}{}
			<-*Release.Load()
		}
		return 0, nil
	})
	return err
}

func (Fragile) ReceivePoisoning(Poisoning) error { return errors.New("poison") }

type Doom struct{}

type Doomed struct{}

func (Doomed) ReceiveDoom(durable.Context, Doom) error { return errors.New("doomed") }

// Morgue tells a test of each dead letter.
type Morgue struct{}

// Buried receives when a dead letter was handled.
var Buried = make(chan struct{}, 1)

func (Morgue) ReceiveDeadLetter(topo.DeadLetter) { Buried <- struct{}{} }
