package raft_test

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// TestWithoutALeader: a node without a leader logs this with the number of reachable members,
// after ten seconds and then every minute.
func TestWithoutALeader(t *testing.T) {
	peers := map[string]string{"n1": "a", "n2": "b", "n3": "c", "n4": "d", "n5": "e"}
	for _, c := range []struct {
		what  string
		nodes []string // that are started
		want  []string // logged by n1 in three minutes
	}{
		{"alone", []string{"n1"}, []string{
			"no leader for 10s: 1 of 5 members reachable", "no leader for 1m10s: 1 of 5 members reachable", "no leader for 2m10s: 1 of 5 members reachable",
		}},
		{"one too few", []string{"n1", "n2"}, []string{
			"no leader for 10s: 2 of 5 members reachable", "no leader for 1m10s: 2 of 5 members reachable", "no leader for 2m10s: 2 of 5 members reachable",
		}},
		{"a majority", []string{"n1", "n2", "n3"}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := transport.NewMemory(transport.MemoryOptions{})
				disks := map[string]*memoryDisk{}
				for name := range peers {
					disks[name] = newMemoryDisk(1)
				}
				founded := startIn(t, network, peers, disks, slices.Sorted(maps.Keys(peers)), nil)
				leaderOf(t, founded.machines)
				founded.close(t)
				var logged bytes.Buffer
				again := startIn(t, network, peers, disks, c.nodes, func(name string) *slog.Logger {
					if name == "n1" {
						return slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
					}
					return nil
				})
				time.Sleep(3*time.Minute + time.Millisecond)
				again.close(t)
				var got []string
				for line := range strings.Lines(logged.String()) {
					_, text, found := strings.Cut(line, `"raft: no leader`)
					if text, _, _ = strings.Cut(text, `"`); found {
						got = append(got, "no leader"+text)
					}
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("logged %q, want %q", got, c.want)
				}
			})
		})
	}
}

// started is a list of state machines that are connected in memory.
type started struct {
	machines []*machine
	links    []transport.Transport
}

// startIn starts nodes with simulated disks and a network in memory.
func startIn(t *testing.T, network *transport.Memory, peers map[string]string, disks map[string]*memoryDisk, names []string, logger func(name string) *slog.Logger) (s started) {
	t.Helper()
	for _, name := range names {
		link, err := network.Join(name)
		if err != nil {
			t.Fatal(err)
		}
		config := raft.Config{Node: name, Peers: peers, Transport: link, Disk: disks[name]}
		if logger != nil {
			config.Logger = logger(name)
		}
		m, err := tryOpen(config)
		if err != nil {
			t.Fatal(err)
		}
		s.machines, s.links = append(s.machines, m), append(s.links, link)
	}
	return s
}

func (s *started) close(t *testing.T) {
	t.Helper()
	for _, m := range s.machines {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, link := range s.links {
		_ = link.Close()
	}
}
