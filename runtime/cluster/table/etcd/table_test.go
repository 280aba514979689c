package etcd

import (
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestPermanent: a request that etcd will always refuse is not repeated.
func TestPermanent(t *testing.T) {
	for err, want := range map[error]bool{
		rpctypes.ErrPermissionDenied:            true,
		rpctypes.ErrAuthFailed:                  true,
		rpctypes.ErrRequestTooLarge:             true,
		status.Error(codes.Unauthenticated, ""): true,
		errKey:                                  true,
		rpctypes.ErrInvalidAuthToken:            false,
		rpctypes.ErrNoLeader:                    false,
		rpctypes.ErrCompacted:                   false,
		rpctypes.ErrNoSpace:                     false,
		errors.New("connection refused"):        false,
	} {
		if got := permanent(fmt.Errorf("a request: %w", err)); got != want {
			t.Errorf("%v is permanent: %v, want %v", err, got, want)
		}
	}
}
