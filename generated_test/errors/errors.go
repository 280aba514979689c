package errors

import (
	"errors"

	"github.com/topogen/topogen/runtime/errtop"
	"github.com/topogen/topogen/runtime/topo"
)

//go:generate go tool topogen build

// Job goes to one of the workers. The worker returns an error or panics.
type Job struct {
	To    int
	Panic bool
}

var ErrJob = errors.New("the job cannot be done")

type Feed struct{ Job Job }

func (f *Feed) Ping(out *FeedSender) error {
	if err := out.SendJob(f.Job); err != nil {
		return err
	}
	return topo.Done
}

type Worker struct{}

func (*Worker) ReceiveJob(j Job) error {
	if j.Panic {
		panic("the job is broken")
	}
	return errtop.Wrap(ErrJob)
}
