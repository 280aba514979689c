package grpc

import (
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

func TestMain(m *testing.M) {
	speed.Parallel(8, 0) // parallel tests wait for connections
	m.Run()
}
