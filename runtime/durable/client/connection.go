package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// ErrClosed is the error of Connect after Close.
var ErrClosed = errors.New("client: closed")

// A Connection receives the messages for a process of a group. See
// [protocol.Connection].
type Connection struct {
	client     *Client
	group, pid string
	out        chan protocol.Message
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	wait       func(ctx context.Context, d time.Duration) // replaced in tests
}

// Connect begins to receive messages, in the background. It returns before the server has
// answered; see [Options.Events]. The result is a [*Connection].
func (c *Client) Connect(group, pid string) (protocol.Connection, error) {
	return c.connect(group, pid, pause)
}

func (c *Client) connect(group, pid string, wait func(context.Context, time.Duration)) (protocol.Connection, error) {
	if group == "" || pid == "" {
		return nil, errors.New("client: the group and the pid of a connection must not be empty")
	}
	ctx, cancel := context.WithCancel(context.Background())
	connection := &Connection{client: c, group: group, pid: pid, out: make(chan protocol.Message), ctx: ctx, cancel: cancel, wait: wait}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return nil, ErrClosed
	}
	c.connections[connection] = struct{}{}
	go connection.run()
	return connection, nil
}

// Messages returns the channel of messages. It is closed after Close.
func (c *Connection) Messages() <-chan protocol.Message { return c.out }

// Close ends the connection.
func (c *Connection) Close() {
	c.cancel()
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	delete(c.client.connections, c)
}

// run connects again and again until Close.
func (c *Connection) run() {
	defer close(c.out)
	for attempt := 1; ; attempt++ {
		connected, err := c.stream(attempt)
		if c.ctx.Err() != nil {
			return
		}
		if connected {
			attempt = 1
		}
		c.event(Event{Attempt: attempt, Err: err})
		c.wait(c.ctx, backoff(attempt))
		if c.ctx.Err() != nil {
			return
		}
	}
}

func (c *Connection) event(e Event) {
	if c.client.options.Events != nil {
		e.Group, e.PID = c.group, c.pid
		c.client.options.Events(e)
	}
}

// backoff returns the time to wait after a number of attempts: 1 s, 2 s, 4 s up to 30 s,
// as the npm SDK does.
func backoff(attempt int) time.Duration {
	const first, longest = time.Second, 30 * time.Second
	if attempt > 5 {
		return longest
	}
	return first << (attempt - 1)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

var errSilence = errors.New("the server was silent for too long")

// stream receives messages until the stream breaks.
func (c *Connection) stream(attempt int) (connected bool, err error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.client.options.Silence, func() { cancel(errSilence) })
	defer silence.Stop()
	request := &http.Request{Method: http.MethodGet, URL: c.client.pollURL(c.group, c.pid), Header: c.client.streams}
	response, err := c.client.transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return false, because(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the server refused the stream with status %s", response.Status)
	}
	c.event(Event{Connected: true, Attempt: attempt})
	r := newReader(&alive{response.Body, silence, c.client.options.Silence}, c.client.options.ResponseMax)
	for {
		text, err := r.next()
		if err != nil {
			return true, because(ctx, err)
		}
		m, err := protocol.DecodeMessage(text)
		if err != nil {
			return true, err
		}
		silence.Stop() // the worker may take its time
		select {
		case c.out <- m:
		case <-c.ctx.Done():
			return true, c.ctx.Err()
		}
		silence.Reset(c.client.options.Silence)
	}
}

// because returns the reason for which a context ended, if it did.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// alive puts off the end of a stream whenever it brings something.
type alive struct {
	r       io.Reader
	timer   *time.Timer
	silence time.Duration
}

func (a *alive) Read(b []byte) (int, error) {
	n, err := a.r.Read(b)
	if n > 0 {
		a.timer.Reset(a.silence)
	}
	return n, err
}
