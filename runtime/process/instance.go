package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/internal/alive"
	"github.com/topogen/topogen/runtime/internal/attempt"
	"github.com/topogen/topogen/runtime/internal/chain"
	"github.com/topogen/topogen/runtime/internal/fencing"
	"github.com/topogen/topogen/runtime/internal/hold"
	"github.com/topogen/topogen/runtime/topo"
)

// Exit codes of a process. A panic outside of handlers exits with code 2 too.
const (
	exitNotStarted = 1   // Handler.Start failed
	exitPanic      = 2   // a handler panicked
	exitRefused    = 125 // the process cannot be the instance that its parent started it for
)

const (
	socketFD   = 3                     // for calls and answers; follows stdin, stdout and stderr
	controlFD  = 4                     // a pipe for commands during a call; it is closed when the parent ends
	aliveEvery = 10 * time.Millisecond // topo.Alive may be called in a tight loop; timeouts are far longer
)

// Commands on the control pipe.
const (
	controlStop   = 's' // the context of Serve ends
	controlCancel = 'c' // the contexts of all calls end
)

// Kind is the kind of a call. The generated code at both ends defines its meaning. This
// package handles Held itself, and knows that Ping may return topo.Done and topo.Idle.
type Kind uint8

// Handler is an instance in its process. Its methods are called one at a time on one
// goroutine, which is not the goroutine of main. If a method panics or calls
// runtime.Goexit, the parent is notified and the process exits.
type Handler interface {
	// Start creates the instance: it calls the constructor and Init.
	Start(ctx context.Context) error
	// Call handles one call. The payload is valid until Call returns. If Call returns an
	// error, the messages added to a are discarded, except with topo.Done and topo.Idle of
	// a Ping.
	Call(ctx context.Context, kind Kind, edge int, payload []byte, a *AnswerBuilder) error
	// Serve calls Serve of the instance. For each message that the instance sends, it calls
	// send, with a function that gives the copies for all receivers. send returns after the
	// parent has taken all of them or none, with the parent's result: nil, topo.ErrStopping,
	// or topo.ErrNoInstance if only copies for receivers that do not exist were dropped.
	Serve(ctx context.Context, send func(Flush) error) error
	// Close calls Close of the instance. The process exits after it returns.
	Close() error
}

// Flush gives the messages that an instance has sent to put, in order. It returns the first
// error of put or of an encoding.
type Flush = func(put func(edge, instance int, payload []byte) error) error

// TakeOver turns this process into the instance that its parent started it for, and then
// does not return. In any other process it only registers the topology, which Start
// requires. Generated packages call it in init, before main. newHandler is called just
// before Start of the handler.
func TakeOver(topology, hash string, newHandler func(Info) Handler) {
	registered.Store(topology, hash)
	own := ownIdentity()
	if own == nil || own.info.Topology != topology {
		return
	}
	conn, control, err := openInherited(own.inherited)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s[%d]: %v\n", own.info.Processor, own.info.Instance, err)
		os.Exit(exitRefused)
	}
	ignoreStopSignals()
	i := &instance{info: own.info, conn: conn, frames: newFrames(conn, own.info.MessageLimit)}
	i.answer.limit, i.sent.limit = own.info.MessageLimit, own.info.MessageLimit
	i.ctx, i.cancel = context.WithCancel(fencing.With(hold.With(alive.With(context.Background(), i), i), i.info.FencingToken))
	i.serveCtx, i.stop = context.WithCancel(i.ctx)
	go i.readControl(control)
	go i.run(hash, newHandler) // not on this goroutine: init is locked to its thread, and switching to it is slow
	select {}
}

// ignoreStopSignals keeps SIGINT and SIGTERM from ending the process. A service manager
// such as systemd sends them to all processes of a topology at once, but the process must
// run until its parent stops it. The signals are caught, not ignored, because programs
// started by a handler would inherit an ignored signal.
func ignoreStopSignals() { signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) }

// instance is the child's side of the connection.
type instance struct {
	info   Info
	conn   *os.File
	frames frames // read only by the goroutine of the handler: a separate reader would cost a switch per call
	in     []byte

	ctx, serveCtx context.Context
	cancel, stop  context.CancelFunc

	answer    AnswerBuilder
	busy      atomic.Bool  // a call is in progress, so the parent reads
	lastAlive atomic.Int64 // when frameAlive was last sent, since processBegan
	serving   atomic.Bool
	holds     atomic.Int32  // number of holds that were not released
	sending   sync.Mutex    // held by a send of Serve, because sends are sequential
	sent      AnswerBuilder // the messages of a send of Serve; guarded by sending
	writing   sync.Mutex
	out       []byte // guarded by writing
}

var processBegan = time.Now()

// readControl executes the commands of the control pipe, also while a handler runs, and
// ends the process when the parent has ended.
func (i *instance) readControl(control *os.File) {
	for command := make([]byte, 1); ; {
		if _, err := control.Read(command); err != nil {
			killGroup()
		}
		switch command[0] {
		case controlStop:
			i.stop()
		case controlCancel:
			i.cancel()
		}
	}
}

// next returns the next frame of the parent, which is trusted.
func (i *instance) next() (frameKind, []byte) {
	kind, body, err := i.frames.next(i.in)
	if err != nil {
		killGroup()
	}
	i.in = body
	return kind, body
}

func (i *instance) run(hash string, newHandler func(Info) Handler) {
	h := i.start(hash, newHandler)
	for {
		kind, body := i.next()
		i.busy.Store(true)
		switch kind {
		case frameCall:
			i.call(h, body)
		case frameServe:
			i.serving.Store(true)
			err := i.guard(frameAnswer, func() error { return h.Serve(i.serveCtx, i.send) })
			i.serving.Store(false)
			i.respond(err, false)
		case frameClose:
			i.respond(i.guard(frameAnswer, h.Close), false)
			os.Exit(0)
		}
	}
}

// start creates the handler and sends the hello.
func (i *instance) start(hash string, newHandler func(Info) Handler) (h Handler) {
	if hash != i.info.Hash {
		i.write(frameHello, func(b []byte) []byte { return appendHello(b, hash, nil, nil) })
		os.Exit(exitRefused)
	}
	i.busy.Store(true)
	err := i.guard(frameHello, func() error {
		h = newHandler(i.info)
		return h.Start(i.ctx)
	})
	i.busy.Store(false)
	i.write(frameHello, func(b []byte) []byte { return appendHello(b, hash, err, nil) })
	if err != nil {
		os.Exit(exitNotStarted)
	}
	return h
}

func appendHello(b []byte, hash string, err error, stack []byte) []byte {
	return appendSized(appendError(appendNumber(b, version), err, stack), hash)
}

func (i *instance) call(h Handler, body []byte) {
	f := fields{rest: body}
	kind, edge, ctx := Kind(f.byte()), f.number(), i.ctx
	if n := f.number(); n > 1 {
		ctx = attempt.With(ctx, n)
	}
	i.answer.reset()
	if kind == Held {
		i.respond(nil, false)
		return
	}
	err := i.guard(frameAnswer, func() error { return h.Call(ctx, kind, edge, f.rest, &i.answer) })
	if large := i.answer.err("messages and reply of the call"); large != nil && isKept(kind, err) {
		err = large
	}
	i.respond(err, isKept(kind, err))
}

// respond sends the answer to the call in progress. The messages of the call are included
// only if kept is true.
func (i *instance) respond(err error, kept bool) {
	i.answer.holds = int(i.holds.Load())
	i.busy.Store(false)
	i.write(frameAnswer, func(b []byte) []byte { return i.answer.appendBody(b, err, kept) })
	i.answer.reset()
}

// isKept reports whether the messages of a call that returned err are delivered. For any
// method but Ping topo.Done and topo.Idle are failures: the message is handled again, or
// is dropped.
func isKept(kind Kind, err error) bool {
	if err == nil || kind != Ping {
		return err == nil
	}
	signal, _ := chain.Sort(err, topo.Done, topo.Idle)
	return signal != nil
}

var errEnded = errors.New("the call ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")

// guard calls a method of the handler. If the method panics, guard sends the panic to the
// parent, in the kind of frame that the parent waits for, and exits.
func (i *instance) guard(kind frameKind, method func() error) error {
	returned := false
	defer func() {
		if returned {
			return
		}
		err := errEnded
		if cause := recover(); cause != nil {
			err = chain.OfPanic(cause)
		}
		stack := debug.Stack()
		i.write(kind, func(b []byte) []byte {
			if kind == frameHello {
				return appendHello(b, i.info.Hash, err, stack)
			}
			return append(appendError(b, err, stack), 0)
		})
		os.Exit(exitPanic)
	}()
	err := method()
	returned = true
	return err
}

// send is the send function that Serve receives. The messages travel in one frame, so that
// the parent takes all of them or none.
func (i *instance) send(flush Flush) error {
	i.sending.Lock()
	defer i.sending.Unlock()
	i.sent.reset()
	err := flush(func(edge, instance int, payload []byte) error {
		i.sent.Send(edge, instance, payload)
		return nil
	})
	if err == nil {
		err = i.sent.err("messages of the send")
	}
	if err != nil {
		return err
	}
	if !i.serving.Load() {
		return topo.ErrStopping // Serve has returned
	}
	if err := i.write(frameSend, func(b []byte) []byte { return append(b, i.sent.sends...) }); err != nil {
		return err
	}
	_, ack := i.next()
	f := fields{rest: ack}
	return f.error()
}

// Hold counts the holds of the instance, for the answers of calls.
func (i *instance) Hold() (release func()) {
	i.holds.Add(1)
	return sync.OnceFunc(func() { i.holds.Add(-1) })
}

// Alive sends frameAlive, at most once per aliveEvery. topo.Alive calls it.
func (i *instance) Alive() {
	now, last := int64(time.Since(processBegan)), i.lastAlive.Load()
	if !i.busy.Load() || last != 0 && now-last < int64(aliveEvery) || !i.lastAlive.CompareAndSwap(last, now) {
		return
	}
	i.write(frameAlive, func(b []byte) []byte { return b })
}

// write sends a frame. The only error is ErrTooLarge: if the connection fails, the parent
// has ended, and the process exits.
func (i *instance) write(kind frameKind, body func([]byte) []byte) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.out = body(begin(i.out, kind))
	if err := end(i.out, i.info.MessageLimit); err != nil {
		return err
	}
	if _, err := i.conn.Write(i.out); err != nil {
		killGroup()
	}
	return nil
}
