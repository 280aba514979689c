package grpc

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestReadable checks that a log does not escape the texts of gRPC twice.
func TestReadable(t *testing.T) {
	refused := `connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.2:7101: connect: connection refused"`
	const plain = "connection error: transport: Error while dialing: dial tcp 10.0.0.2:7101: connect: connection refused"
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("a file is missing"), "a file is missing"},
		{errors.New(`the name "n1" is taken`), `the name "n1" is taken`},
		{status.Error(codes.Unavailable, refused), plain},
		{status.Error(codes.Unavailable, "n2: "+refused), "n2: " + plain},
		{status.Error(codes.Unavailable, fmt.Sprintf("last error: desc = %q", refused)), "last error: " + plain},
		{status.Error(codes.Unknown, `desc = "not closed`), `desc = "not closed`},
	} {
		if got := readable(c.err).Error(); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}
