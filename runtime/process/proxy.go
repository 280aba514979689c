package process

import (
	"context"
	"errors"
	"log/slog"
)

// Kinds of calls that generated code makes.
const (
	Receive            Kind = iota // a message of an edge
	Ping                           // Ping
	Finish                         // Finish
	InputClosed                    // InputClosed, of the input that stands in place of the edge; the payload is its state
	InputRecovered                 // InputRecovered, likewise
	ProcessorRestarted             // ProcessorRestarted, of the processor that stands in place of the edge
	AllInputsClosed                // AllInputsClosed
	InputState                     // nothing but the state, likewise, for a tracker
	Held                           // nothing: the answer says what the instance holds; no handler is called
)

// Remote is an instance in a process, as the generated proxy of a processor calls
// it. It is used in the turns of the instance.
type Remote struct {
	child *Child
	b     []byte      // of the payload
	holds int         // of the last answer
	over  bool        // a call has told that the process is about to end
	leave func() bool // ends what Cancel began
}

// Deliver takes a message that the process has sent: it checks it, and where put
// is true it sends it on.
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

// Buffer is empty, for the payload of the next call.
func (r *Remote) Buffer() []byte { return r.b[:0] }

// Call has the process handle a call, passes on what it has sent, and returns the
// reply, which is valid until the next call. What it sends counts as a whole or
// not at all.
func (r *Remote) Call(kind Kind, edge int, payload []byte, deliver Deliver) (reply []byte, err error) {
	if cap(payload) > cap(r.b) && cap(payload) <= keepMax {
		r.b = payload
	}
	a, err := r.child.Call(kind, edge, payload)
	if err != nil {
		if r.Ends(err) {
			r.holds = 0 // lost, not released: OnHolds is not told
		}
		return nil, err
	}
	r.setHolds(a.Holds)
	for _, put := range [...]bool{false, true} {
		for s := range a.Sends() {
			if err := deliver(s.Edge, s.Instance, s.Payload, put); err != nil {
				r.child.Kill() // it is no process of ours
				return nil, errors.Join(ErrProtocol, err)
			}
		}
	}
	r.over = r.over || r.Ends(a.Err)
	return a.Reply, a.Err
}

// Serve runs Serve in the process until ctx ends or Serve returns. Sent is called
// after each message that was sent on.
func (r *Remote) Serve(ctx context.Context, deliver Deliver, open, sent func() error) error {
	defer context.AfterFunc(ctx, r.child.Stop)()
	err := r.child.Serve(func(edge, instance int, payload []byte) error {
		if err := open(); err != nil {
			return err
		}
		if err := deliver(edge, instance, payload, true); err != nil {
			r.child.Kill()
			return errors.Join(ErrProtocol, err)
		}
		return sent()
	})
	if e, ok := errors.AsType[*ExitError](err); ok && e.Exit.Clean() {
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

// Held brings up to date what the instance holds, which its goroutines may change
// between two calls.
func (r *Remote) Held() error {
	_, err := r.Call(Held, 0, nil, nil)
	return err
}

// Holds is how many holds of the instance were not released when the last call
// ended. A call of kind Held brings it up to date.
func (r *Remote) Holds() int { return r.holds }

// Cancel ends the contexts of the handlers when ctx ends, until Close.
func (r *Remote) Cancel(ctx context.Context) { r.leave = context.AfterFunc(ctx, r.child.Cancel) }

// Close closes the instance and ends its process, where that has not ended before.
func (r *Remote) Close() error {
	if r == nil {
		return nil
	}
	if r.leave != nil {
		defer r.leave()
	}
	if r.child.Err() != nil {
		return nil
	}
	if _, err := r.child.Close(); !r.over {
		return err
	}
	return nil
}

// Done, Ended, Ends, Refuses and Kill make a Remote the piper.Process of its instance.
func (r *Remote) Done() <-chan struct{} { return r.child.Done() }

// Ended is nil where the process has ended of its own accord and in order.
func (r *Remote) Ended() error {
	err := r.child.Err()
	if e, ok := errors.AsType[*ExitError](err); ok && e.Exit.Clean() {
		return nil
	}
	return err
}

// Ends reports whether err says that the process has ended, or that it panicked
// and is about to.
func (r *Remote) Ends(err error) bool {
	if _, ok := errors.AsType[*ExitError](err); ok || errors.Is(err, ErrProtocol) {
		return true
	}
	e, ok := errors.AsType[*RemoteError](err)
	return ok && e.Stack != nil
}

// Refuses reports whether err says that a message could not be given to the process,
// by a fault of the message: the handler was not called.
func (r *Remote) Refuses(err error) bool {
	if _, ok := errors.AsType[*EncodeError](err); ok {
		return true
	}
	e, ok := errors.AsType[*RemoteError](err)
	return ok && e.Is(ErrDecode)
}

// Kill ends the process.
func (r *Remote) Kill() { r.child.Kill() }
