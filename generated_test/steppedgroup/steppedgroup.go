// Package steppedgroup has a restart group. Most of its members run in processes, and they fail
// in all ways. A test runs the topology under a Stepper.
package steppedgroup

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/topogen/topogen/runtime/topo"
)

// Job is a unit of work. Its number says how its handlers fail.
type Job struct{ N int }

// Feed sends 30 jobs.
type Feed struct{ n int }

func (f *Feed) Ping(out interface{ SendJob(Job) error }) error {
	if f.n++; f.n > 30 {
		return topo.Done
	}
	return out.SendJob(Job{f.n})
}

// Serving sends 20 jobs that do not fail.
type Serving struct{}

func (Serving) Serve(_ context.Context, out interface{ SendJob(Job) error }) error {
	for range 20 {
		if err := out.SendJob(Job{}); err != nil {
			return err
		}
	}
	return nil
}

// Stage passes jobs on. Some jobs make it fail or hang, or end its process during or after the call.
type Stage struct{}

func (Stage) ReceiveJob(j Job, out interface{ SendJob(Job) }) error {
	switch j.N % 30 {
	case 3:
		return errors.New("fails")
	case 7:
		panic("fails")
	case 11:
		os.Exit(3)
	case 15:
		select {}
	case 21:
		runtime.Goexit()
	case 25, 28:
		go os.Exit(4)
	}
	out.SendJob(j)
	return nil
}

// Sink fails at its 9th job.
type Sink struct{ n int }

func (s *Sink) ReceiveJob(Job) error {
	if s.n++; s.n == 9 {
		return errors.New("fails")
	}
	return nil
}
