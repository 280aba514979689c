package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	grpctransport "github.com/topogen/topogen/runtime/transport/grpc"
)

// connection remembers why etcd cannot be reached. The client repeats a request until its
// context ends, and then returns only the error of the context, without the TLS failure or
// the address that refused the connection.
type connection struct {
	failure atomic.Pointer[string] // nil: the last attempt has reached etcd
}

// note is an interceptor. The client calls it for each attempt of a request.
func (c *connection) note(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	text := status.Convert(err).Message()
	switch status.Code(err) {
	case codes.Unavailable:
		text = grpctransport.Readable(text)
		c.failure.Store(&text)
	case codes.DeadlineExceeded, codes.Canceled: // the request may have waited for a connection, or for etcd
		if text, ok := strings.CutPrefix(text, noConnection); ok {
			text = grpctransport.Readable(text)
			c.failure.Store(&text)
		}
	default:
		c.failure.Store(nil)
	}
	return err
}

// noConnection begins the text of gRPC's error for a request that has waited for a
// connection until its context ended. The failure of the last attempt to connect follows.
const noConnection = "latest balancer error: "

// explain adds to the error of a context why etcd could not be reached.
func (c *connection) explain(err error) error {
	failure := c.failure.Load()
	if failure == nil {
		return err
	}
	switch code := status.Code(err); {
	case code == codes.DeadlineExceeded, code == codes.Canceled, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: etcd cannot be reached: %s", err, *failure)
	}
	return err
}

// Waiting says that the table waits for etcd, while etcd cannot be reached.
func (t *Table) Waiting() string {
	failure := t.connection.failure.Load()
	if failure == nil {
		return ""
	}
	return fmt.Sprintf("etcd at %s: %s", strings.Join(t.config.Endpoints, ", "), *failure)
}
