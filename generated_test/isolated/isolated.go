// Package isolated has processors that run in processes of their own.
package isolated

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

type Job struct {
	ID   int
	Do   string // "", "error", "panic", "exit", "kill", "hang"
	Tags []string
	At   time.Time
}

type Result struct {
	ID, Value, Process int
	Tags               []string
}

type Note struct{ ID int }
type Hint struct{ ID, Hops int }
type Query struct{ ID int }
type Answer struct{ Process, Ticks, Instance int }

// Feed sends the jobs.
type Feed struct{ Jobs []Job }

func (f *Feed) Serve(ctx context.Context, out *FeedSender) error {
	for _, j := range f.Jobs {
		if err := out.SendJob(j); err != nil {
			return err
		}
	}
	return nil
}

type WorkerConfig struct{ Factor int }

type Worker struct {
	in     topo.Instance
	factor int
	ticks  int
	inputs *WorkerInputs
}

func NewWorker(in topo.Instance, with WorkerConfig) *Worker {
	return &Worker{in: in, factor: with.Factor}
}

func (w *Worker) Inputs(in *WorkerInputs) { w.inputs = in }

func (w *Worker) ReceiveJobFromSource(j Job, out *WorkerSender) { out.SendResult(Result{ID: j.ID}) }

var errJob = errors.New("this job fails")

func (w *Worker) ReceiveJob(ctx context.Context, j *Job, out *WorkerSender) error {
	out.SendNote(Note{j.ID})
	switch j.Do {
	case "error":
		return errJob
	case "panic":
		panic("this job panics")
	case "exit":
		os.Exit(7)
	case "hang":
		select {}
	}
	out.SendResult(Result{j.ID, j.ID * w.factor, os.Getpid(), j.Tags})
	out.SendHint(Hint{j.ID, 1})
	return nil
}

func (w *Worker) ReceiveHint(h Hint, out *WorkerSender) {
	if h.Hops < 3 {
		out.SendHint(Hint{h.ID, h.Hops + 1})
	}
}

func (w *Worker) ReceiveQuery(q *Query) (Answer, error) {
	if q.ID < 0 {
		return Answer{}, errJob
	}
	return Answer{os.Getpid(), w.ticks, w.in.Index}, nil
}

func (w *Worker) ReceiveTick(topo.Tick) error { w.ticks++; return nil }

// Source sends one job after each start, with a new number.
type Source struct{}

func (s *Source) Serve(ctx context.Context, out *SourceSender) error {
	if err := out.SendJob(Job{ID: 1_000_000 + os.Getpid()}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type Collector struct {
	Results []Result
	notes   []Note
	Parcels chan Parcel // nil: parcels are ignored
	Heard   []string
}

func (c *Collector) ReceiveParcel(p Parcel) {
	if c.Parcels != nil {
		c.Parcels <- p
	}
}
func (c *Collector) ReceiveHeard(h Heard) { c.Heard = append(c.Heard, h.What) }

func (c *Collector) ReceiveResult(r Result) { c.Results = append(c.Results, r) }
func (c *Collector) ReceiveNote(n Note)     { c.notes = append(c.notes, n) }

type Morgue struct{ Letters []topo.DeadLetter }

func (m *Morgue) ReceiveDeadLetter(d topo.DeadLetter) { m.Letters = append(m.Letters, d) }
