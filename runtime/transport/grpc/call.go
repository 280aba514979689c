package grpc

import (
	"context"
	"log/slog"
	"math"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CallLimit limits the calls of a method of a registered service. In addition, a caller must
// take each message of the answer within 30 seconds.
type CallLimit struct {
	// Time is how long a call may take. 0 means a minute.
	Time time.Duration

	// Conversation means that the call has no limit of its time, and that its caller may be
	// silent. In all other calls the caller must send each message within 10 seconds.
	Conversation bool
}

// NoTimeLimit is the Time of a call that may go on forever.
const NoTimeLimit time.Duration = math.MaxInt64

// call is a running call, or the stream of a peer.
type call struct {
	transport *Transport
	method    string
	limit     CallLimit
	ended     chan error // the limit that has ended the call; room for one
}

func (t *Transport) newCall(method string) *call {
	c := &call{transport: t, method: method, limit: t.config.Limits[method], ended: make(chan error, 1)}
	switch {
	case c.limit.Conversation, method == methodCarry:
		c.limit.Conversation = true
		c.limit.Time = NoTimeLimit
	case c.limit.Time == 0:
		c.limit.Time = callTimeMax
	}
	return c
}

// requestKey is the key of the timer of a call whose request has not arrived.
type requestKey struct{}

// awaitRequest returns a context that ends if no handler begins within requestTimeMax: gRPC reads
// the request of a call with one request before it runs the handler.
func (t *Transport) awaitRequest(ctx context.Context, method string) context.Context {
	if t.newCall(method).limit.Conversation {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(requestTimeMax, func() { cancel(context.DeadlineExceeded) })
	return context.WithValue(ctx, requestKey{}, timer)
}

// requestArrived ends the limit of awaitRequest.
func requestArrived(ctx context.Context) {
	if timer, ok := ctx.Value(requestKey{}).(*time.Timer); ok {
		timer.Stop()
	}
}

// callUnary runs the handler of a call with one answer.
func (t *Transport) callUnary(ctx context.Context, method string, handle func(context.Context) (any, error)) (any, error) {
	requestArrived(ctx)
	var answer any
	err := t.newCall(method).run(ctx, func(ctx context.Context) (err error) {
		answer, err = handle(ctx)
		return err
	})
	if err != nil {
		return nil, err // the handler may still run, and write its answer
	}
	return answer, nil
}

// callStream runs the handler of a stream.
func (t *Transport) callStream(stream gogrpc.ServerStream, method string, handle func(gogrpc.ServerStream) error) error {
	requestArrived(stream.Context()) // RecvMsg limits the request
	c := t.newCall(method)
	s := &limitedStream{
		ServerStream: stream, call: c,
		request: c.within(requestTimeMax, "the caller has sent no request for %v"),
		answer:  c.within(answerTimeMax, "the caller has taken no message of the answer for %v"),
	}
	s.request.Stop()
	s.answer.Stop()
	return c.run(stream.Context(), func(ctx context.Context) error {
		s.ctx = ctx
		return handle(s)
	})
}

// run runs the handler of a call. At a limit, when a certificate of the connection expires,
// and when the transport is closed, it returns at once, because a handler that waits for
// its caller does not notice the end of its context. gRPC then ends the stream, which ends the handler.
func (c *call) run(ctx context.Context, handle func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.within(c.limit.Time, "the call has taken %v").Stop()
	if caller, ok := callerOf(ctx); ok {
		defer time.AfterFunc(time.Until(caller.expires), func() { c.expire(caller) }).Stop()
	}
	done := make(chan error, 1)
	c.transport.running.Go(func() { done <- handle(ctx) })
	select {
	case err := <-done:
		return err
	case err := <-c.ended:
		return err
	case <-c.transport.ctx.Done():
		return status.Error(codes.Unavailable, errClosed.Error())
	}
}

// expire ends the call because a certificate has expired.
func (c *call) expire(caller identity) {
	c.transport.identified.log(slog.LevelWarn, "expired "+caller.id.String(), "ended a call: a certificate has expired",
		"caller", caller.id.String(), "method", c.method, "expired", caller.expires)
	c.end(errCallExpired)
}

// within ends the call after a time, unless the returned timer is stopped.
func (c *call) within(limit time.Duration, why string) *time.Timer {
	return time.AfterFunc(limit, func() { c.end(status.Errorf(codes.DeadlineExceeded, why, limit)) })
}

func (c *call) end(err error) {
	select {
	case c.ended <- err:
	default:
	}
}

// limitedStream is the stream of a call. Its timers run while the handler waits for the
// caller.
type limitedStream struct {
	gogrpc.ServerStream
	ctx             context.Context
	call            *call
	request, answer *time.Timer
}

func (s *limitedStream) Context() context.Context { return s.ctx }

func (s *limitedStream) RecvMsg(m any) error {
	if !s.call.limit.Conversation {
		s.request.Reset(requestTimeMax)
		defer s.request.Stop()
	}
	return s.ServerStream.RecvMsg(m)
}

func (s *limitedStream) SendMsg(m any) error {
	s.answer.Reset(answerTimeMax)
	defer s.answer.Stop()
	return s.ServerStream.SendMsg(m)
}
