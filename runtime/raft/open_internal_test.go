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

// TestSettingsReachTheNode: all settings of the configuration reach the node, including settings
// without which other tests would still pass.
func TestSettingsReachTheNode(t *testing.T) {
	codec := fsm.Codec[oneNumber]{
		Append:  func(b []byte, v *oneNumber) ([]byte, error) { return append(b, v.n), nil },
		Consume: func(b []byte, v *oneNumber) error { v.n = b[0]; return nil },
	}
	definition := fsm.Definition[oneNumber, oneNumber, struct{}]{
		Update:     fsm.NoResult(func(u *oneNumber, s *oneNumber) error { s.n += u.n; return nil }),
		StateCodec: codec, UpdateCodec: codec, Description: "state .oneNumber\nupdate .oneNumber\nmessage oneNumber\n1 n int64\n",
	}
	peers := map[string]string{"n1": "127.0.0.1:0", "n2": "127.0.0.1:1"}
	m, err := New(Config{
		Topology: "test", Group: "numbers", Instance: 2, Instances: 4, Node: "n1", Peers: peers, Prefer: "n2", Dir: memdir.Quick(t), Sync: wal.Always,
		SnapshotEvery: 77, ElectionTimeout: 800 * time.Millisecond, Heartbeat: 100 * time.Millisecond, Forward: true, Logger: slog.New(slog.DiscardHandler),
	}, definition)
	if err == nil {
		err = m.Start(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := m.node.config
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if c.Prefer != "n2" || c.Spread != 3 || c.Tick != 100*time.Millisecond || c.Topology != "test" || c.GroupName != "numbers/2-of-4" {
		t.Errorf("the node prefers %q, spreads as %d, ticks each %v and is of %q, %q", c.Prefer, c.Spread, c.Tick, c.Topology, c.GroupName)
	}
	if o := c.Core; o.LeaseTime != 300*time.Millisecond || o.SnapshotEvery != 77 || o.ElectionTicks != 8 || !o.Forward || !strings.HasPrefix(o.Types, definition.Description) || o.Nonce == 0 {
		t.Errorf("the settings of the core are %+v", o)
	}
}
