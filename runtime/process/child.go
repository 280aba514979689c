package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	startupTimeout = 10 * time.Second       // by default: an Init may load a model
	closeTimeout   = 5 * time.Second        // by default: Close flushes
	endTimeout     = time.Second            // for a process that closed its connection, or was killed, to be gone
	outputTimeout  = 100 * time.Millisecond // without a line of the rest of the output: who holds it open is no child of ours
	outputRounds   = 20                     // of that at most, for an output without end
)

// Settings say which instance a process is to be, and how it is kept.
type Settings struct {
	Info
	Memory         int64         // limit of the resident size in bytes; 0: none
	StartupTimeout time.Duration // for the constructor and Init; 0: 10 s
	CloseTimeout   time.Duration // for Close of the instance and the end of the process, to which 1 s is added; 0: 5 s
	Logger         *slog.Logger  // of what the process prints; nil: slog.Default()
	// OnAlive is called whenever the process shows progress during a call: by
	// topo.Alive, or by a send of Serve. It is called on the goroutine of the call;
	// nil is nobody.
	OnAlive func()
	// OnLate, if not nil, is called on the goroutine of Start after the process was
	// killed because it had not started within StartupTimeout.
	OnLate func()
	// OnStart, if not nil, is called with the number of the process when the instance
	// runs in it. Nil logs it.
	OnStart func(pid int)
	// Attempt, if not nil, is asked at each call how often its message was handed to a
	// handler, this time included.
	Attempt func() int
	// OnHolds, if not nil, is called on the goroutine of a call with what the instance
	// holds when that has changed (topo.Hold).
	OnHolds func(n int)
}

// Child is the process of an instance, as its parent sees it. Call, Serve and
// Close are called one at a time; all other methods by anybody at any time.
type Child struct {
	settings Settings
	process  *os.Process
	conn     *os.File // of calls and answers
	control  *os.File // a pipe
	done     chan struct{}
	output   sync.WaitGroup
	lines    atomic.Uint64 // of it that were logged
	pipes    []*os.File    // what it prints

	inUse  sync.Mutex // held by a call: the connection stays open
	frames frames
	in     []byte
	out    []byte
	answer Answer

	mu     sync.Mutex
	reaped bool  // its number may be somebody else's
	cause  error // why it was killed
	exit   Exit

	stopped, canceled atomic.Bool // were told
}

// Start starts the process of an instance and returns when its constructor and its
// Init have returned. Where one of them fails, the error wraps a *RemoteError, where
// the process ends, it is an *ExitError. When ctx ends before that, the process is
// killed; later ctx does nothing.
func Start(ctx context.Context, s Settings) (*Child, error) {
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	s.StartupTimeout = cmp.Or(s.StartupTimeout, startupTimeout)
	s.CloseTimeout = cmp.Or(s.CloseTimeout, closeTimeout)
	s.MessageLimit = cmp.Or(s.MessageLimit, MessageLimitDefault)
	if err := s.check(); err != nil {
		return nil, err
	}
	if hash, ok := registered.Load(s.Topology); !ok || hash != s.Hash {
		return nil, fmt.Errorf("process: no package has called TakeOver for topology %q with hash %q", s.Topology, s.Hash)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	c := &Child{settings: s, done: make(chan struct{})}
	c.inUse.Lock()
	defer c.inUse.Unlock()
	if err := c.spawn(); err != nil {
		return nil, fmt.Errorf("process: %s[%d] could not be started: %w", s.Processor, s.Instance, err)
	}
	c.frames = newFrames(c.conn, s.MessageLimit)
	timeout := time.AfterFunc(s.StartupTimeout, func() { c.kill(fmt.Errorf("%w: %v", ErrStartup, s.StartupTimeout)) })
	defer timeout.Stop()
	defer context.AfterFunc(ctx, func() { c.kill(context.Cause(ctx)) })()
	err := c.hello()
	if err == nil && timeout.Stop() && ctx.Err() == nil {
		return c, nil
	}
	if err == nil {
		err = c.failed(ErrStartup) // it said hello when it was being killed
	}
	if errors.Is(err, ErrStartup) && s.OnLate != nil {
		s.OnLate()
	}
	return nil, err
}

func (c *Child) hello() error {
	body, err := c.next(frameHello)
	if err != nil {
		return c.failed(err)
	}
	f := fields{rest: body}
	theirs := f.number()
	err = f.error()
	hash := string(f.sized())
	switch {
	case f.broken || theirs != version:
		return c.failed(fmt.Errorf("%w: not a hello of version %d: the executable is of another build", ErrProtocol, version))
	case hash != c.settings.Hash:
		return c.failed(fmt.Errorf("%w: the executable is of another build: the hash of its plan is %q, not %q", ErrProtocol, hash, c.settings.Hash))
	case err != nil:
		c.await(endTimeout)
		c.kill(nil)
		return fmt.Errorf("process %d of %s[%d] did not start: %w", c.PID(), c.settings.Processor, c.settings.Instance, err)
	}
	return nil
}

// PID is the number of the process.
func (c *Child) PID() int { return c.process.Pid }

// Done is closed when the process has ended, however that came. An end during a
// call is the error of that call, too.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is how the process ended, an *ExitError; nil while it lives.
func (c *Child) Err() error {
	select {
	case <-c.done:
		return c.exitError()
	default:
		return nil
	}
}

func (c *Child) exitError() *ExitError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &ExitError{Processor: c.settings.Processor, Instance: c.settings.Instance, Exit: c.exit, Cause: c.cause}
}

// Call has the process handle a call and waits for the answer, which is valid
// until the next call. An error is that of a process that is gone, or is killed
// now, an *ExitError, and nothing came of the call; or it is an *EncodeError, and the
// process does not know of the call. The error of the handler is in the answer.
func (c *Child) Call(kind Kind, edge int, payload []byte) (*Answer, error) {
	if err := fits(payload, c.settings.MessageLimit); err != nil {
		return nil, &EncodeError{Err: err}
	}
	c.inUse.Lock()
	defer c.inUse.Unlock()
	attempt := 1
	if c.settings.Attempt != nil {
		attempt = c.settings.Attempt()
	}
	err := c.write(frameCall, func(b []byte) []byte {
		return append(appendNumber(appendNumber(append(b, byte(kind)), edge), attempt), payload...)
	})
	if err != nil {
		return nil, c.failedInCall(err)
	}
	if err := c.readAnswer(); err != nil {
		return nil, c.failedInCall(err)
	}
	return &c.answer, nil
}

func (c *Child) readAnswer() error {
	body, err := c.next(frameAnswer)
	if err != nil {
		return err
	}
	return c.answer.decode(body)
}

// Serve runs Serve of the instance and returns what that returns: nil, an error of
// package topo or context itself, a *RemoteError; or an *ExitError. Each message is
// given to send, and the process goes on when send has returned; what it returns is
// what the sender in the process returns.
func (c *Child) Serve(send func(edge, instance int, payload []byte) error) error {
	c.inUse.Lock()
	defer c.inUse.Unlock()
	if err := c.write(frameServe, empty); err != nil {
		return c.failed(err)
	}
	for {
		kind, body, err := c.nextOf(frameSend, frameAnswer)
		if err != nil {
			return c.failed(err)
		}
		if kind == frameAnswer {
			if err := c.answer.decode(body); err != nil {
				return c.failed(err)
			}
			return c.answer.Err
		}
		f := fields{rest: body}
		edge, instance := f.number(), f.number()
		if f.broken {
			return c.failed(fmt.Errorf("%w: a message that ends too early", ErrProtocol))
		}
		c.progress()
		err = send(edge, instance, f.rest)
		if err := c.write(frameAck, func(b []byte) []byte { return appendError(b, err, nil) }); err != nil {
			return c.failed(err)
		}
	}
}

// Stop ends the context of Serve: the topology drains. It does not wait.
func (c *Child) Stop() { c.sendControl(&c.stopped, controlStop) }

// Cancel ends the contexts of all calls: the topology gives up. It does not wait.
func (c *Child) Cancel() { c.sendControl(&c.canceled, controlCancel) }

func (c *Child) sendControl(sent *atomic.Bool, command byte) {
	if sent.CompareAndSwap(false, true) { // so the pipe has room, also where nobody reads it
		c.control.Write([]byte{command})
	}
}

// Kill ends the process, and those that it has started in its process group, by
// SIGKILL. A call under way returns an error that matches ErrKilled.
func (c *Child) Kill() { c.kill(ErrKilled) }

// Close calls Close of the instance, in the process, and waits until that has
// ended, at most 1 s longer than Settings.CloseTimeout; then it is killed. The error is that of
// Close of the instance, or, an *ExitError, says that the process did not end in
// order, or before.
func (c *Child) Close() (Exit, error) {
	c.inUse.Lock()
	defer c.inUse.Unlock()
	timeout := time.AfterFunc(c.settings.CloseTimeout+endTimeout, func() { c.kill(ErrClose) })
	defer timeout.Stop()
	err := c.write(frameClose, empty)
	if err == nil {
		err = c.readAnswer()
	}
	if err != nil {
		err = c.failed(err)
		return c.exitError().Exit, err
	}
	c.await(c.settings.CloseTimeout + 2*endTimeout)
	exit := c.exitError()
	if c.answer.Err == nil && !exit.Exit.Clean() {
		return exit.Exit, exit
	}
	return exit.Exit, c.answer.Err
}

// next reads the next frame that is not only a sign of life, which is to be of a
// certain kind.
func (c *Child) next(want frameKind) ([]byte, error) {
	_, body, err := c.nextOf(want, want)
	return body, err
}

func (c *Child) nextOf(one, other frameKind) (frameKind, []byte, error) {
	for {
		kind, body, err := c.frames.next(c.in)
		c.in = body
		switch {
		case err != nil:
			return 0, nil, err
		case kind == one || kind == other:
			return kind, body, nil
		case kind != frameAlive:
			return 0, nil, fmt.Errorf("%w: a frame of kind %d where it is none's turn", ErrProtocol, kind)
		}
		c.progress()
	}
}

func (c *Child) progress() {
	if c.settings.OnAlive != nil {
		c.settings.OnAlive()
	}
}

func empty(b []byte) []byte { return b }

func (c *Child) write(kind frameKind, body func([]byte) []byte) error {
	c.out = body(begin(c.out, kind))
	if err := end(c.out, c.settings.MessageLimit); err != nil {
		return err
	}
	_, err := c.conn.Write(c.out)
	return err
}

// failedInCall is failed for a call that has a message in hand.
func (c *Child) failedInCall(err error) error {
	err = c.failed(err)
	if exit, ok := err.(*ExitError); ok {
		exit.Exit.InCall = true
		c.mu.Lock()
		c.exit.InCall = true
		c.mu.Unlock()
	}
	return err
}

// failed returns the error for a connection that failed with err: how the process
// ended, which it has now or is ended for. Of what was too large to be sent the
// process knows nothing, and lives.
func (c *Child) failed(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	if !errors.Is(err, ErrProtocol) && c.await(endTimeout) {
		return c.exitError()
	}
	if !errors.Is(err, ErrProtocol) {
		err = fmt.Errorf("its connection has ended, and it has not: %w", err)
	}
	c.kill(err)
	c.await(endTimeout) // one that waits in the kernel cannot be killed: go on without it
	exit := c.exitError()
	if exit.Cause == nil {
		exit.Cause = err // it had ended before it could be killed
	}
	return exit
}

// await waits for the end of the process.
func (c *Child) await(timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

// ended notes how the process ended. What it held is given back when the call that
// is under way has read what is left, which is in the socket by now: who holds the
// other end besides is not waited for.
func (c *Child) ended(exit Exit) {
	c.mu.Lock()
	c.reaped, c.exit = true, exit
	if c.cause == nil {
		c.conn.SetReadDeadline(time.Now().Add(endTimeout))
	}
	c.mu.Unlock()
	read := make(chan struct{})
	go func() { c.output.Wait(); close(read) }()
	timer := time.NewTimer(outputTimeout)
	defer timer.Stop()
	lines := c.lines.Load()
	for round := 0; round < outputRounds; round++ {
		select {
		case <-read:
			round = outputRounds
		case <-timer.C:
			if now := c.lines.Load(); now == lines {
				round = outputRounds
			} else {
				lines = now
				timer.Reset(outputTimeout)
			}
		}
	}
	closeAll(c.pipes)
	c.control.Close()
	close(c.done)
	c.inUse.Lock()
	c.conn.Close()
	c.inUse.Unlock()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
