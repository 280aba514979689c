package clustermessageswrong

import "context"

type Count struct{}

// Total cannot join the replies of several instances.
type Total struct{ N int }

// Look has the number of a node, not its name.
type Look struct{ Number int }

// Wait stays on its node, so it is not encoded.
type Wait struct{ Done chan bool }

// Job may go to another node and cannot be encoded.
type Job struct {
	Name string
	Done chan bool
}

type Feed struct{}

func (Feed) Serve(context.Context, *FeedSender) error { return nil }

type Probe struct{}

func (Probe) ReceiveLook(Look) {}
func (Probe) ReceiveWait(Wait) {}

type Counter struct{}

func (Counter) ReceiveCount(Count) Total { return Total{} }
func (Counter) ReceiveJob(Job)           {}
