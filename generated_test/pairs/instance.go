package pairs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// messages is the number of messages that an instance of a source sends.
const messages = 30

// Out is a message type that is not in the package of the topology.
type Out struct{ ID int }

// Config is the configuration of a processor in the topology file.
type Config struct {
	Size int
	Wait time.Duration
}

// Instance has the fields and methods that all processors share. The methods of the generated types
// call the methods of Instance.
type Instance struct {
	name        string
	index       int
	incarnation int // the number of instances before it with the same index
	made        int // number of messages that a source has sent
}

// New makes an instance.
func New(in topo.Instance) (Instance, error) {
	openInChild()
	i := Instance{name: in.Processor, index: in.Index}
	events, err := read()
	for _, e := range events {
		if e.Kind == made && e.Where == i.name && e.Instance == i.index {
			i.incarnation++
		}
	}
	record(made, i.name, 0, i.index, 0)
	return i, err
}

// Index returns the index of the instance.
func (i *Instance) Index() int { return i.index }

// method runs Init, Finish or Close: it records a call that succeeds, or fails according to the plan.
func (i *Instance) method(ctx context.Context, name string, kind Kind) error {
	if plan.Method == name && plan.Place == i.name && (name != "Init" || i.incarnation == 0) {
		record(failed, i.name, 0, i.index, 0)
		if err := fail(ctx); err != nil {
			return err
		}
	}
	record(kind, i.name, 0, i.index, 0)
	return nil
}

// Started, Finished and Closed implement Init, Finish and Close. They have other names, because
// topogen refuses a processor that gets these methods from an embedded type of another package.
func (i *Instance) Started(ctx context.Context) error  { return i.method(ctx, "Init", started) }
func (i *Instance) Finished(ctx context.Context) error { return i.method(ctx, "Finish", finished) }
func (i *Instance) Closed() error                      { return i.method(context.Background(), "Close", closed) }

// Send sends a message along one edge.
type Send struct {
	Edge    string // "sender.Message"; "" if Do records its messages
	Do      func(id int) error
	Durable bool
}

func (s Send) send(id int) error {
	if s.Edge == "work.Again" {
		id += againIDs
	}
	switch err := s.Do(id); {
	case err == nil && s.Edge == "": // Do records its messages
	case err == nil, s.Durable && isAccepted(err):
		record(sent, s.Edge, id, 0, 0)
	case s.Durable:
		record(unsure, s.Edge, id, 0, 0)
		return err
	case err != topo.ErrFull: // a message that is refused with ErrFull is not recorded
		return err
	}
	return nil
}

// SendNext implements Ping: it sends the next message of a source along one of the edges.
func (i *Instance) SendNext(ctx context.Context, edges ...Send) error {
	if i.made == messages || plan.Next {
		return topo.Done
	}
	id := SourceID(i.incarnation*messages+i.made, i.index)
	if i.name == "other" {
		id += otherIDs
	}
	i.made++
	if err := edges[id%len(edges)].send(id); errors.Is(err, topo.ErrStopping) {
		return topo.Done // of an Ask along a durable edge
	} else if err != nil {
		return err
	}
	if i.incarnation >= failingSources {
		return nil
	}
	return i.mayFail(ctx, i.name, id, 1)
}

const (
	otherIDs       = 100 * messages * instancesMax // the first id of the processor other
	againIDs       = 100 * attemptsMax * otherIDs  // the first id of the messages Again
	failingSources = 3                             // after this number of instances a source does not fail again, so that it ends
)

// SendAll implements Serve: it sends all messages of a source.
func (i *Instance) SendAll(ctx context.Context, edges ...Send) error {
	for {
		if err := i.SendNext(ctx, edges...); err == topo.Done {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// instancesMax is the largest number of instances of a processor: perNode on each of three nodes.
const instancesMax = 9

// SourceID returns the id of message n of an instance. All instances of a source have different ids.
func SourceID(n, instance int) int { return n*instancesMax + instance }

// attemptsMax is larger than the number of attempts of any message.
const attemptsMax = 10

// Handle handles a message. It sends first, so that a failure comes after the sends.
func (i *Instance) Handle(ctx context.Context, edge string, id int, sends ...Send) error {
	attempt := topo.Attempt(ctx)
	record(began, edge, id, i.index, attempt)
	for _, s := range sends {
		if err := s.send((id*instancesMax+i.index)*attemptsMax + attempt); err != nil {
			return fmt.Errorf("send %d: %w", id, err)
		}
	}
	if err := i.mayFail(ctx, edge, id, attempt); err != nil {
		return err
	}
	record(done, edge, id, i.index, attempt)
	return nil
}

func (i *Instance) mayFail(ctx context.Context, where string, id, attempt int) error {
	if plan.Place != i.name || plan.Method != "" || plan.Failure == NoFailure || !failsAt(id, attempt) {
		return nil
	}
	record(failed, where, id, i.index, attempt)
	return fail(ctx)
}

// Data returns the data of a message. If a handler changes the data, other attempts must not see the
// change.
func Data(id int) []int { return []int{id} }

// Change checks that the data of a message is unchanged, and then changes it.
func (i *Instance) Change(edge string, id int, data []int) {
	if len(data) != 1 || data[0] != id {
		record(changed, edge, id, i.index, 0)
		return
	}
	data[0] = -1
}

// Letter records a dead letter.
func Letter(edge string, d topo.DeadLetter, id int) { record(letter, edge, id, d.Instance, d.Attempts) }
