package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topogen/topogen/runtime/internal/patient"
)

const (
	startupTimeout = 10 * time.Second // default; an Init may load a model
	closeTimeout   = 5 * time.Second  // default; Close may flush
	endTimeout     = time.Second      // for a process to exit after it closed its connection or was killed

	// After a process has ended, its remaining output is logged until no line has arrived
	// for outputTimeout. A pipe that is still open then is held by a process that it
	// started. outputRounds limits how often the timeout is extended.
	outputTimeout = 500 * time.Millisecond
	outputRounds  = 4
)

// Settings describe the instance that a process runs, and how the parent manages it.
type Settings struct {
	Info
	Memory         int64         // limit of the resident size in bytes; 0: no limit
	StartupTimeout time.Duration // for the constructor and Init; 0: 10 s
	CloseTimeout   time.Duration // for Close of the instance and the exit of the process, plus 1 s; 0: 5 s
	Logger         *slog.Logger  // for the output of the process; nil: slog.Default()
	// OnAlive, if not nil, is called when the process makes progress during a call: when
	// it calls topo.Alive, or when Serve sends a message. It runs on the goroutine of the
	// call.
	OnAlive func()
	// OnLate, if not nil, is called on the goroutine of Start after the process was
	// killed because it did not start within StartupTimeout.
	OnLate func()
	// OnStart is called with the process ID when the instance runs in the process. If it
	// is nil, the process ID is logged.
	OnStart func(pid int)
	// Attempt, if not nil, is called before each call. It returns how often the message
	// was given to a handler, including this call.
	Attempt func() int
	// OnHolds, if not nil, is called on the goroutine of a call when the number of the
	// instance's holds has changed (topo.Hold).
	OnHolds func(n int)
}

// Child is the parent's side of the process of an instance. Call, Serve and Close must
// not run at the same time; all other methods are safe for concurrent use.
type Child struct {
	settings Settings
	process  *os.Process
	conn     *os.File // for calls and answers
	control  *os.File // a pipe for Stop and Cancel
	done     chan struct{}
	output   sync.WaitGroup
	lines    atomic.Uint64 // lines of output that were logged
	pipes    []*os.File    // stdout and stderr of the process

	inUse  sync.Mutex // held during a call, so that the connection stays open
	frames frames
	in     []byte
	out    []byte
	answer Answer

	mu     sync.Mutex
	reaped bool  // the process ID may belong to another process
	cause  error // why the parent killed the process
	exit   Exit

	stopped, canceled atomic.Bool // the command was sent
}

// Start starts the process of an instance and returns after the constructor and Init have
// returned. If one of them fails, the error wraps a *RemoteError. If the process ends,
// the error is an *ExitError. If ctx ends before Start returns, the process is killed;
// after that, ctx has no effect.
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
	timeout := patient.AfterFunc(s.StartupTimeout, func() { c.kill(fmt.Errorf("%w: %v", ErrStartup, s.StartupTimeout)) })
	defer timeout.Stop()
	defer context.AfterFunc(ctx, func() { c.kill(context.Cause(ctx)) })()
	err := c.hello()
	if err == nil && timeout.Stop() && ctx.Err() == nil {
		return c, nil
	}
	if err == nil {
		err = c.failed(ErrStartup) // hello arrived while the process was being killed
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
	peerVersion := f.number()
	err = f.error()
	hash := string(f.sized())
	switch {
	case f.broken || peerVersion != version:
		return c.failed(fmt.Errorf("%w: no valid hello of version %d: the executable is from a different build", ErrProtocol, version))
	case hash != c.settings.Hash:
		return c.failed(fmt.Errorf("%w: the executable is from a different build: its plan has hash %q, want %q", ErrProtocol, hash, c.settings.Hash))
	case err != nil:
		c.await(endTimeout)
		c.kill(nil)
		return fmt.Errorf("process %d of %s[%d] did not start: %w", c.PID(), c.settings.Processor, c.settings.Instance, err)
	}
	return nil
}

// PID is the process ID.
func (c *Child) PID() int { return c.process.Pid }

// Done is closed when the process has ended, for whatever reason. If the process ends
// during a call, the call also returns an error.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err returns an *ExitError if the process has ended, and nil while it runs.
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

// Call runs a handler call in the process and waits for the answer, which is valid until
// the next call. The error is an *ExitError if the process has ended or had to be killed;
// the call then has no result. It is an *EncodeError if the message could not be encoded;
// the process then has not received the call. An error of the handler is in the answer.
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

// Serve runs Serve of the instance and returns its result: nil, an error of package topo
// or context itself, or a *RemoteError. It returns an *ExitError if the process ends.
// Each send is passed to send, with its messages for all receivers. The sender in the
// process waits until send has returned, and returns the error that send returned.
func (c *Child) Serve(send func(iter.Seq[Send]) error) error {
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
		if f.skipSends(); f.broken {
			return c.failed(fmt.Errorf("%w: a message is truncated", ErrProtocol))
		}
		c.progress()
		err = send(sendsIn(body))
		if err := c.write(frameAck, func(b []byte) []byte { return appendError(b, err, nil) }); err != nil {
			return c.failed(err)
		}
	}
}

// Stop ends the context of Serve, because the topology drains. It does not wait.
func (c *Child) Stop() { c.sendControl(&c.stopped, controlStop) }

// Cancel ends the contexts of all calls. It does not wait.
func (c *Child) Cancel() { c.sendControl(&c.canceled, controlCancel) }

func (c *Child) sendControl(sent *atomic.Bool, command byte) {
	if sent.CompareAndSwap(false, true) { // once only, so the pipe always has room even if the process never reads it
		c.control.Write([]byte{command})
	}
}

// Kill ends the process, and the processes that it started in its process group, with
// SIGKILL. A call in progress returns an error that matches ErrKilled.
func (c *Child) Kill() { c.kill(ErrKilled) }

// Close calls Close of the instance in the process and waits until the process has
// exited. If that takes more than 1 s longer than Settings.CloseTimeout, Close kills the
// process. The error is the result of Close of the instance, or an *ExitError if
// the process exited earlier or did not exit cleanly.
func (c *Child) Close() (Exit, error) {
	c.inUse.Lock()
	defer c.inUse.Unlock()
	limit := c.settings.CloseTimeout + endTimeout
	timeout := patient.AfterFunc(limit, func() { c.kill(fmt.Errorf("%w: %v", ErrClose, limit)) })
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

// next reads the next frame, skipping frameAlive. The frame must be of kind want.
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
			return 0, nil, fmt.Errorf("%w: unexpected frame of kind %d", ErrProtocol, kind)
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

// failedInCall returns the same error as failed, and records that the process ended during
// a call.
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

// failed returns the error for a connection that failed with err: an *ExitError for the
// process, which has ended or is killed here. The exception is ErrTooLarge: nothing was
// sent, so the process keeps running.
func (c *Child) failed(err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	if !errors.Is(err, ErrProtocol) && c.await(endTimeout) {
		return c.exitError()
	}
	if !errors.Is(err, ErrProtocol) {
		err = fmt.Errorf("the connection is closed but the process is still running: %w", err)
	}
	c.kill(err)
	c.await(endTimeout) // a process that is blocked in the kernel does not exit: do not wait longer
	exit := c.exitError()
	if exit.Cause == nil {
		exit.Cause = err // the process had ended before it could be killed
	}
	return exit
}

// await waits until the process has ended, and reports whether it did within timeout.
func (c *Child) await(timeout time.Duration) bool { return patient.Wait(timeout, c.done) }

// ended records how the process ended and releases its files. The connection is closed
// after the call in progress has read the remaining data, which is in the socket buffer
// already. ended does not wait for other processes that hold the other end open.
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
