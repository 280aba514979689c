package cluster

import (
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

func TestMain(m *testing.M) {
	speed.Parallel(8, 0) // they wait for other nodes
	m.Run()
}
