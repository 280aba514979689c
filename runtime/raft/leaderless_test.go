package raft_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// TestWithoutALeader: a node says that there is none, and how many it hears of: after
// ten seconds and each further minute, and not when there is one.
func TestWithoutALeader(t *testing.T) {
	peers := map[string]string{"n1": "a", "n2": "b", "n3": "c", "n4": "d", "n5": "e"}
	for _, c := range []struct {
		what  string
		nodes []string // that run
		want  []string // of n1, in three minutes
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
				var logged bytes.Buffer
				var ms []*machine
				for _, name := range c.nodes {
					link, err := network.Join(name)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = link.Close() }()
					id := wal.Identity{Topology: "test", Group: "lists", Node: raft.MemberID(name)}
					log, stored, err := wal.NewDisk(1).Open(id, wal.Options{})
					if err != nil {
						t.Fatal(err)
					}
					config := raft.Config{Node: name, Peers: peers, Transport: link, Log: log, Stored: stored}
					if name == "n1" {
						config.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
					}
					m, err := tryOpen(config)
					if err != nil {
						t.Fatal(err)
					}
					ms = append(ms, m)
				}
				time.Sleep(3*time.Minute + time.Millisecond)
				for _, m := range ms {
					if err := m.Close(); err != nil {
						t.Error(err)
					}
				}
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
