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
	"github.com/topogen/topogen/runtime/internal/hold"
	"github.com/topogen/topogen/runtime/topo"
)

// Exit codes of a process; a panic outside of handlers is the Go runtime's own 2.
const (
	exitNotStarted = 1   // Handler.Start failed
	exitPanic      = 2   // a handler panicked
	exitRefused    = 125 // this process is not what its parent takes it for
)

const (
	socketFD   = 3                     // of calls and answers, behind stdin, stdout and stderr
	controlFD  = 4                     // a pipe that says what may come during a call; its end is that of the parent
	aliveEvery = 10 * time.Millisecond // topo.Alive may be called in a tight loop; a timeout is far longer
)

// What the control pipe says.
const (
	controlStop   = 's' // the context of Serve ends
	controlCancel = 'c' // the contexts of all calls end
)

// Kind says what a call is. The generated code of both ends knows what it means;
// this package looks for Held alone.
type Kind uint8

// Handler is an instance in its process. One method runs at a time, on one
// goroutine, which is not that of main. A panic of any of them, or
// runtime.Goexit, is told to the parent and ends the process.
type Handler interface {
	// Start makes the instance: its constructor and its Init.
	Start(ctx context.Context) error
	// Call handles one call. The payload is valid until it returns. With an error
	// other than topo.Done and topo.Idle, what a was given is not sent.
	Call(ctx context.Context, kind Kind, edge int, payload []byte, a *AnswerBuilder) error
	// Serve calls Serve of the instance. send returns when the parent has taken the
	// message, with what it says: nil, or topo.ErrStopping.
	Serve(ctx context.Context, send func(edge, instance int, payload []byte) error) error
	// Close calls Close of the instance. The process ends when it has returned.
	Close() error
}

// TakeOver makes this process the instance that its parent started it for, and
// then does not return. In any other process it only notes that there is such a
// topology, which Start relies on. Generated packages call it in init, before
// main. newHandler is called just before the handler's Start.
func TakeOver(topology, hash string, newHandler func(Info) Handler) {
	registered.Store(topology, hash)
	me := ownIdentity()
	if me == nil || me.info.Topology != topology {
		return
	}
	conn, control, err := openInherited(me.inherited)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s[%d]: %v\n", me.info.Processor, me.info.Instance, err)
		os.Exit(exitRefused)
	}
	ignoreStopSignals()
	i := &instance{info: me.info, conn: conn, frames: newFrames(conn, me.info.MessageLimit)}
	i.answer.limit = me.info.MessageLimit
	i.ctx, i.cancel = context.WithCancel(hold.With(alive.With(context.Background(), i), i))
	i.serveCtx, i.stop = context.WithCancel(i.ctx)
	go i.readControl(control)
	go i.run(hash, newHandler) // not here: init is locked to its thread, and a switch to it is slow
	select {}
}

// ignoreStopSignals: who stops the topology stops all of its processes, some at
// once (systemd). What they still have to do the parent tells them. Signals are
// caught, not ignored, so that the programs that a handler starts do not inherit
// it.
func ignoreStopSignals() { signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) }

// instance is the child's end of the connection.
type instance struct {
	info   Info
	conn   *os.File
	frames frames // read by the goroutine of the handler alone: another would cost a switch for each call
	in     []byte

	ctx, serveCtx context.Context
	cancel, stop  context.CancelFunc

	answer    AnswerBuilder
	busy      atomic.Bool  // a call is under way: the parent reads
	lastAlive atomic.Int64 // when Alive was told last, since begin
	serving   atomic.Bool
	holds     atomic.Int32 // begun and not released
	sending   sync.Mutex   // one send of Serve at a time
	writing   sync.Mutex
	out       []byte // guarded by writing
}

var processBegan = time.Now()

// readControl does what the control pipe says, whatever the handler does, and ends the
// process when the parent has ended.
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

// next is the next frame of the parent, which keeps to the protocol.
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
			i.respond(err)
		case frameClose:
			i.respond(i.guard(frameAnswer, h.Close))
			os.Exit(0)
		}
	}
}

// start makes the handler and says hello.
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
		i.respond(nil)
		return
	}
	err := i.guard(frameAnswer, func() error { return h.Call(ctx, kind, edge, f.rest, &i.answer) })
	if large := i.answer.err(); large != nil && isKept(err) {
		err = large
	}
	i.respond(err)
}

// respond sends the answer to the call under way.
func (i *instance) respond(err error) {
	kept := isKept(err)
	i.answer.holds = int(i.holds.Load())
	i.busy.Store(false)
	i.write(frameAnswer, func(b []byte) []byte { return i.answer.appendBody(b, err, kept) })
	i.answer.reset()
}

// isKept reports whether what a handler has sent is sent, where it returns err.
func isKept(err error) bool {
	if err == nil || err == topo.Done || err == topo.Idle {
		return true
	}
	found, _ := chain.Sort(err, topo.Done, topo.Idle)
	return found != nil
}

var errEnded = errors.New("the call ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")

// guard calls a method of the handler. When that panics the parent hears it, in
// the frame that it waits for, and the process ends.
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

// send is what Serve sends by.
func (i *instance) send(edge, instance int, payload []byte) error {
	if err := fits(payload, i.info.MessageLimit); err != nil {
		return err
	}
	i.sending.Lock()
	defer i.sending.Unlock()
	if !i.serving.Load() {
		return topo.ErrStopping // Serve has returned
	}
	err := i.write(frameSend, func(b []byte) []byte {
		return append(appendNumber(appendNumber(b, edge), instance), payload...)
	})
	if err != nil {
		return err
	}
	_, ack := i.next()
	f := fields{rest: ack}
	return f.error()
}

// Hold counts what the instance holds, for the answers of calls.
func (i *instance) Hold() (release func()) {
	i.holds.Add(1)
	return sync.OnceFunc(func() { i.holds.Add(-1) })
}

// Alive is called by topo.Alive.
func (i *instance) Alive() {
	now, last := int64(time.Since(processBegan)), i.lastAlive.Load()
	if !i.busy.Load() || last != 0 && now-last < int64(aliveEvery) || !i.lastAlive.CompareAndSwap(last, now) {
		return
	}
	i.write(frameAlive, func(b []byte) []byte { return b })
}

// write sends a frame. Its error is ErrTooLarge; without a parent there is nothing
// left to do.
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
