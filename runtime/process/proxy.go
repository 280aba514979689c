package process

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"

	"github.com/topogen/topogen/runtime/topo"
)

// Kinds of calls that generated code makes.
const (
	Receive            Kind = iota // a message of an edge
	Ping                           // Ping
	Finish                         // Finish
	InputClosed                    // InputClosed; the edge field holds the index of the input, the payload its state
	InputRecovered                 // InputRecovered; as for InputClosed
	ProcessorRestarted             // ProcessorRestarted; the edge field holds the index of the processor
	AllInputsClosed                // AllInputsClosed
	InputState                     // no handler: updates the state of an input in a tracker; as for InputClosed
	Held                           // no handler: the answer holds the number of holds
)

// Remote is an instance in a process, as called by the generated proxy of a processor. It
// is used only in turns of the instance.
type Remote struct {
	child      *Child
	b          []byte      // buffer for payloads
	holds      int         // from the last answer
	ending     bool        // a call has reported that the process is about to end
	stopCancel func() bool // undoes Cancel
}

// Deliver checks a message that the process has sent and, if put is true, sends it to its
// receiver. If the receiver does not exist, which only this process can know, it counts the
// message and returns topo.ErrNoInstance. Any other error ends the process.
type Deliver func(edge, instance int, payload []byte, put bool) error

// StartRemote starts the process of an instance.
func StartRemote(ctx context.Context, s Settings) (*Remote, error) {
	c, err := Start(ctx, s)
	if err != nil {
		return nil, err
	}
	if s.OnStart != nil {
		s.OnStart(c.PID())
		return &Remote{child: c}, nil
	}
	logger := s.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Info("topogen: an instance runs in a process", slog.String("processor", s.Processor), slog.Int("instance", s.Instance), slog.Int("pid", c.PID()))
	return &Remote{child: c}, nil
}

// Buffer returns an empty buffer for the payload of the next call.
func (r *Remote) Buffer() []byte { return r.b[:0] }

// Call runs a handler call in the process, delivers the messages that the handler sent,
// and returns the reply, which is valid until the next call. All messages of a call are
// delivered, or none.
func (r *Remote) Call(kind Kind, edge int, payload []byte, deliver Deliver) (reply []byte, err error) {
	if cap(payload) > cap(r.b) && cap(payload) <= keepMax {
		r.b = payload
	}
	a, err := r.child.Call(kind, edge, payload)
	if err != nil {
		if r.Ends(err) {
			r.holds = 0 // lost, not released, so OnHolds is not called
		}
		return nil, err
	}
	r.setHolds(a.Holds)
	if _, err := r.deliver(a.Sends(), deliver); err != nil {
		return nil, err
	}
	r.ending = r.ending || r.Ends(a.Err)
	return a.Reply, a.Err
}

// deliver delivers all messages, or none if one of them is invalid. missed is
// topo.ErrNoInstance if a receiver does not exist. The others have their messages even then.
func (r *Remote) deliver(sends iter.Seq[Send], deliver Deliver) (missed, err error) {
	for _, put := range [...]bool{false, true} { // checks all messages before it sends the first
		for s := range sends {
			switch err := deliver(s.Edge, s.Instance, s.Payload, put); {
			case err == topo.ErrNoInstance:
				missed = err
			case err != nil:
				r.child.Kill() // a process of this version does not send this
				return nil, errors.Join(ErrProtocol, err)
			}
		}
	}
	return missed, nil
}

// Serve runs Serve in the process until ctx ends or Serve returns. It calls open before
// and sent after it delivers the messages of a send. If open returns an error, no receiver
// gets the message. If a receiver does not exist, the send returns topo.ErrNoInstance.
func (r *Remote) Serve(ctx context.Context, deliver Deliver, open, sent func() error) error {
	defer context.AfterFunc(ctx, r.child.Stop)()
	err := r.child.Serve(func(sends iter.Seq[Send]) error {
		if err := open(); err != nil {
			return err
		}
		missed, err := r.deliver(sends, deliver)
		if err != nil {
			return err
		}
		if err := sent(); err != nil {
			return err
		}
		return missed
	})
	if isClean(err) {
		return nil
	}
	return err
}

func (r *Remote) setHolds(n int) {
	if n == r.holds {
		return
	}
	if r.holds = n; r.child.settings.OnHolds != nil {
		r.child.settings.OnHolds(n)
	}
}

// Held updates the number of holds, which goroutines of the instance may change between
// two calls.
func (r *Remote) Held() error {
	_, err := r.Call(Held, 0, nil, nil)
	return err
}

// Holds is the number of holds that were not released when the last call ended. Call Held
// to update it.
func (r *Remote) Holds() int { return r.holds }

// Cancel ends the contexts of the handlers when ctx ends, until Close is called.
func (r *Remote) Cancel(ctx context.Context) { r.stopCancel = context.AfterFunc(ctx, r.child.Cancel) }

// Close closes the instance and ends its process, unless the process has ended already.
func (r *Remote) Close() error {
	if r == nil {
		return nil
	}
	if r.stopCancel != nil {
		defer r.stopCancel()
	}
	if r.child.Err() != nil {
		return nil
	}
	if _, err := r.child.Close(); !r.ending {
		return err
	}
	return nil
}

// Done, Ended, Ends, Refuses and Kill implement piper.Process.
func (r *Remote) Done() <-chan struct{} { return r.child.Done() }

// Ended returns the error of a process that has ended, and whether the process exited cleanly on its
// own.
func (r *Remote) Ended() (clean bool, err error) {
	err = r.child.Err()
	return isClean(err), err
}

func isClean(err error) bool {
	e, ok := errors.AsType[*ExitError](err)
	return ok && e.Exit.Clean()
}

// Ends reports whether err means that the process has ended, or has panicked and is about
// to end.
func (r *Remote) Ends(err error) bool {
	if _, ok := errors.AsType[*ExitError](err); ok || errors.Is(err, ErrProtocol) {
		return true
	}
	e, ok := errors.AsType[*RemoteError](err)
	return ok && e.Stack != nil
}

// Refuses reports whether err means that a message could not be given to the process
// because of a fault in the message. The handler was not called.
func (r *Remote) Refuses(err error) bool {
	if _, ok := errors.AsType[*EncodeError](err); ok {
		return true
	}
	e, ok := errors.AsType[*RemoteError](err)
	return ok && errors.Is(e, ErrDecode)
}

// Kill ends the process because of cause, which may be nil.
func (r *Remote) Kill(cause error) { r.child.kill(cmp.Or(cause, ErrKilled)) }
