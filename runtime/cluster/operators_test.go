package cluster

import (
	"context"
	"testing"
	"testing/synctest"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// commandStream is the stream of an operator that sends one request.
type commandStream struct {
	gogrpc.ServerStream
	ctx     context.Context
	request chan string
	parts   int
}

func (s *commandStream) Context() context.Context { return s.ctx }

func (s *commandStream) RecvMsg(m any) error {
	select {
	case text := <-s.request:
		m.(*wrapperspb.StringValue).Value = text
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *commandStream) SendMsg(any) error {
	s.parts++
	return nil
}

// TestSilentOperators: operators that open a call and send no request do not keep others
// from their answers.
func TestSilentOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &operators{view: func() *View { return new(View) }, shows: newAnswering()}
		open := func() *commandStream {
			return &commandStream{ctx: t.Context(), request: make(chan string, 1)}
		}
		for range 2 * answersMax {
			go func() { _ = o.handle(nil, open()) }()
		}
		synctest.Wait()
		s := open()
		s.request <- `{"show":"status"}`
		if err := o.handle(nil, s); err != nil || s.parts == 0 {
			t.Errorf("%d parts of an answer, and the error %v", s.parts, err)
		}
	})
}
