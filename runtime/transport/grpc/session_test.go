package grpc

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestAFrameDuringCloseIsNoViolation has a frame that arrives while the transport is being
// closed. The peer must not be blamed for it.
func TestAFrameDuringCloseIsNoViolation(t *testing.T) {
	var log strings.Builder
	tr := &Transport{logLimit: newLogLimiter(slog.New(slog.NewTextHandler(&log, nil)), "peers")}
	tr.ctx, tr.cancel = context.WithCancel(t.Context())
	p := &peer{name: "n2"}
	tr.cancel()
	err := (&streamReceiver{transport: tr, peer: p}).frame(nil)
	end := tr.endStatus(p, new(net.TCPAddr), err)
	if status.Code(end) != codes.Unavailable || p.count.Refused.Load() != 0 || log.Len() > 0 {
		t.Errorf("the stream ends with %v, %d frames are refused, logged: %s", end, p.count.Refused.Load(), log.String())
	}
}
