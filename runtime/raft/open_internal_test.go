package raft

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// oneNumber is the type of a state and of its update.
type oneNumber struct{ n byte }

// TestElectionTicks: an election timeout is not shorter than its setting.
func TestElectionTicks(t *testing.T) {
	for timeout, want := range map[time.Duration]int{200 * time.Millisecond: 2, 290 * time.Millisecond: 3, time.Second: 10} {
		if got := (&Config{ElectionTimeout: timeout, Heartbeat: 100 * time.Millisecond}).electionTicks(); got != want {
			t.Errorf("%v must be %d heartbeats of 100ms, got %d", timeout, want, got)
		}
	}
}

// numbers is the definition of a state machine that adds numbers.
var numbers = fsm.Definition[oneNumber, oneNumber, struct{}]{
	Update:     fsm.NoResult(func(u *oneNumber, s *oneNumber) error { s.n += u.n; return nil }),
	StateCodec: numberCodec, UpdateCodec: numberCodec, Description: "state .oneNumber\nupdate .oneNumber\nmessage oneNumber\n1 n int64\n",
}

var numberCodec = fsm.Codec[oneNumber]{
	Append:  func(b []byte, v *oneNumber) ([]byte, error) { return append(b, v.n), nil },
	Consume: func(b []byte, v *oneNumber) error { v.n = b[0]; return nil },
}

// startedNode starts a node, ends it, and returns its configuration.
func startedNode(t *testing.T, c Config) NodeConfig {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	m, err := New(c, numbers)
	if err == nil {
		err = m.Start(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	started := m.node.config
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return started
}

// TestSettingsReachTheNode: all settings of the configuration reach the node, including settings
// without which other tests would still pass.
func TestSettingsReachTheNode(t *testing.T) {
	c := startedNode(t, Config{
		Topology: "test", Group: "numbers", Instance: 2, Instances: 4, Node: "n1", Peers: map[string]string{"n1": "127.0.0.1:0", "n2": "127.0.0.1:1"}, Prefer: "n2",
		Dir: memdir.Quick(t), Sync: wal.Always, SnapshotEvery: 77, ChecksumEvery: 33, ElectionTimeout: 800 * time.Millisecond, Heartbeat: 100 * time.Millisecond, Forward: true,
	})
	if c.Prefer != "n2" || c.Spread != 3 || c.Tick != 100*time.Millisecond || c.Topology != "test" || c.GroupName != "numbers/2-of-4" || c.ChecksumEvery != 33 {
		t.Errorf("the node prefers %q, spreads as %d, ticks each %v, is of %q, %q, and its checksums are %d entries apart",
			c.Prefer, c.Spread, c.Tick, c.Topology, c.GroupName, c.ChecksumEvery)
	}
	if o := c.Core; o.Name != "n1" || len(o.Peers) != 2 || o.LeaseTime != 300*time.Millisecond || o.SnapshotEvery != 77 || o.ElectionTicks != 8 || !o.Forward ||
		!strings.HasPrefix(o.Types, numbers.Description) || o.Nonce == 0 {
		t.Errorf("the settings of the core are %+v", o)
	}
}
