package cluster

import (
	"testing"

	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/speed"
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{"besieged": runBesieged})
	speed.Parallel(8, 0) // they wait for other nodes
	m.Run()
}
