package raft_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/wire"
)

// sites is a state whose codec cannot decode everything that it encodes: MarshalBinary of a
// url.URL accepts the host "my host", and UnmarshalBinary does not.
type sites struct{ URLs map[string]url.URL }

// addSite is an update that changes the host of a site; "" removes the site.
type addSite string

func (a *addSite) Update(s *sites) error {
	if s.URLs == nil {
		s.URLs = map[string]url.URL{}
	}
	s.URLs["home"] = url.URL{Scheme: "http", Host: string(*a)}
	if *a == "" {
		delete(s.URLs, "home")
	}
	return nil
}

// sitesDefinition has codecs as topogen generates them.
var sitesDefinition = fsm.Definition[sites, addSite, struct{}]{
	Update: fsm.NoResult((*addSite).Update),
	StateCodec: fsm.Codec[sites]{
		Append: func(b []byte, s *sites) ([]byte, error) {
			for _, v := range s.URLs {
				p, err := v.MarshalBinary()
				if err != nil {
					return b, wire.Failed("Sites", "URLs", err)
				}
				b = wire.AppendBytes(append(b, 1<<3|2), p)
			}
			return b, nil
		},
		Consume: func(b []byte, s *sites) error {
			r := wire.Read(b)
			for r.Next() {
				var v url.URL
				r.Within(v.UnmarshalBinary(r.Message()))
				s.URLs = map[string]url.URL{"home": v}
			}
			return r.End("Sites", "1 URLs")
		},
		Parts: []string{"URLs"},
	},
	UpdateCodec: fsm.Codec[addSite]{
		Append:  func(b []byte, a *addSite) ([]byte, error) { return append(b, *a...), nil },
		Consume: func(b []byte, a *addSite) error { *a = addSite(b); return nil },
	},
}

// startSites starts a state machine of sites on one disk.
func startSites(t *testing.T, disk raft.Disk) *raft.Machine[sites, addSite, struct{}] {
	t.Helper()
	m, err := raft.New(raft.Config{Disk: disk, Topology: "test", Group: "sites", Logger: slog.New(slog.DiscardHandler)}, sitesDefinition)
	if err == nil {
		err = m.Start(context.Background(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestAStateThatCannotBeDecoded: a snapshot whose state cannot be decoded does not replace the log.
// The error names the field, a restart reads the log, and a snapshot succeeds after another update
// has repaired the state.
func TestAStateThatCannotBeDecoded(t *testing.T) {
	disk := newMemoryDisk(1)
	m := startSites(t, disk)
	propose := func(host addSite) {
		t.Helper()
		if _, err := m.Propose(t.Context(), host); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // the disk keeps two snapshots, so the third one would remove the entries that are needed
		propose("my host")
		_, err := m.Snapshot(t.Context())
		if !errors.Is(err, fsm.ErrCodec) || !strings.Contains(err.Error(), "Sites.URLs") || !strings.Contains(err.Error(), "my%20host") {
			t.Errorf("Snapshot: %v", err)
		}
		if got := m.Status().SnapshotError; !strings.Contains(got, "Sites.URLs") {
			t.Errorf("the status must have the error, got %q", got)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		m = startSites(t, disk)
		if err := m.Read(t.Context(), func(s *sites) {
			if u := s.URLs["home"]; u.Host != "my host" {
				t.Errorf("the host is %q after a restart", u.Host)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	propose("host")
	if at, err := m.Snapshot(t.Context()); err != nil || at != m.Status().Applied {
		t.Errorf("Snapshot: entry %d, %v", at, err)
	}
}
