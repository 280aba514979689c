package grpc

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// blockedStream is a stream whose caller neither sends nor takes a message.
type blockedStream struct {
	gogrpc.ServerStream
	ctx context.Context
}

func (s *blockedStream) Context() context.Context { return s.ctx }
func (s *blockedStream) RecvMsg(any) error        { <-s.ctx.Done(); return s.ctx.Err() }
func (s *blockedStream) SendMsg(any) error        { return s.RecvMsg(nil) }

// TestCallLimits: a caller that does not send its request, does not take the answer, or
// takes it too slowly cannot keep a call.
func TestCallLimits(t *testing.T) {
	receive := func(s gogrpc.ServerStream) error { return s.RecvMsg(nil) }
	send := func(s gogrpc.ServerStream) error { return s.SendMsg(nil) }
	wait := func(s gogrpc.ServerStream) error { <-s.Context().Done(); return s.Context().Err() }
	for _, c := range []struct {
		name   string
		limit  CallLimit
		handle func(gogrpc.ServerStream) error
		after  time.Duration // 0: the call does not end
		want   string
	}{
		{"no request", CallLimit{}, receive, 10 * time.Second, "sent no request for 10s"},
		{"no request of a long call", CallLimit{Time: time.Hour}, receive, 10 * time.Second, "sent no request for 10s"},
		{"no request of an endless call", CallLimit{Time: NoTimeLimit}, receive, 10 * time.Second, "sent no request for 10s"},
		{"a silent conversation", CallLimit{Conversation: true}, receive, 0, ""},
		{"an answer that is not taken", CallLimit{}, send, 30 * time.Second, "taken no message of the answer for 30s"},
		{"a conversation that is not taken", CallLimit{Conversation: true}, send, 30 * time.Second, "taken no message of the answer for 30s"},
		{"a call", CallLimit{}, wait, time.Minute, "the call has taken 1m0s"},
		{"a long call", CallLimit{Time: time.Hour}, wait, time.Hour, "the call has taken 1h0m0s"},
		{"an endless call", CallLimit{Time: NoTimeLimit}, wait, 0, ""},
		{"a conversation", CallLimit{Conversation: true}, wait, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, hangUp := context.WithCancel(t.Context())
				tr := &Transport{config: Config{Limits: map[string]CallLimit{"/a/b": c.limit}}, ctx: t.Context()}
				ended := make(chan error, 1)
				began := time.Now()
				go func() { ended <- tr.callStream(&blockedStream{ctx: ctx}, "/a/b", c.handle) }()
				const forever = 48 * time.Hour
				time.AfterFunc(forever, hangUp)
				err := <-ended
				took := time.Since(began)
				hangUp()
				if c.after == 0 {
					if took != forever {
						t.Errorf("after %v: %v", took, err)
					}
				} else if took != c.after || status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), c.want) {
					t.Errorf("after %v: %v\nwant %q after %v", took, err, c.want, c.after)
				}
				tr.running.Wait()
			})
		})
	}
}
