package raft_test

import (
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
)

const stackTypes = "state .Stack\nupdate .Move\nresult .Int64\nmessage Stack\n1 value list int64\nmessage Move\n1 Push int64\nmessage Int64\n1 value int64\n"

// TestTypesOfALog: a program opens a log that was written with the same types or with fewer fields.
// It refuses other logs and leaves them unchanged. This holds with and without a snapshot.
func TestTypesOfALog(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		disk := newMemoryDisk(1)
		open := func(pairs ...string) (*stackMachine, error) {
			d := stackDefinition
			d.Description = strings.NewReplacer(pairs...).Replace(stackTypes)
			m, err := raft.New(raft.Config{Disk: disk, Topology: "test", Group: "stack", Logger: slog.New(slog.DiscardHandler)}, d)
			if err == nil {
				err = m.Start(t.Context(), nil)
			}
			return m, err
		}
		use := func(what string, pairs ...string) {
			t.Helper()
			m, err := open(pairs...)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if _, err := m.Propose(t.Context(), move{push: 1}); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if snapshot {
				if _, err := m.Snapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(what, says string, pairs ...string) {
			t.Helper()
			if _, err := open(pairs...); !errors.Is(err, fsm.ErrIncompatible) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s, snapshot %t: %v", what, snapshot, err)
			}
		}
		use("at the beginning")
		use("again")
		refused("another type", "field 1 of Move, Push, was int64, and is string now", "Push int64", "Push string")
		refused("another number", "Push of Move was field 1, and is field 2 now", "1 Push", "2 Push")
		refused("no result", "the result was Int64, and it no longer exists", "result .Int64\n", "")
		use("after the refused programs")
		use("one more field", "1 Push int64", "1 Push int64\n2 Note string")
		refused("the older program", "field 2 of Move, Note, was string, and it no longer exists")
		use("the newer program", "1 Push int64", "1 Push int64\n2 Note string")
	}
}

// TestTypesOfAGroup: a member stops if the types of its program contradict the log, or lack fields
// of the log. The other members continue.
func TestTypesOfAGroup(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		peers := named("n1", "n2") // n3 is added later
		start := func(name string, d fsm.Definition[stack, move, int64]) (*stackMachine, error) {
			all := maps.Clone(peers)
			if name == "n3" {
				all[name] = "host-n3:1"
			}
			m, err := raft.New(v.connect(raft.Config{
				Node: name, Peers: all, Topology: "test", Group: "stack", Logger: slog.New(slog.DiscardHandler), Forward: true,
			}), d)
			if err == nil {
				err = m.Start(t.Context(), nil)
			}
			t.Cleanup(func() { _ = m.Close() })
			return m, err
		}
		of := func(pairs ...string) fsm.Definition[stack, move, int64] {
			d := stackDefinition
			d.Description = strings.NewReplacer(pairs...).Replace(stackTypes)
			return d
		}
		newer := of("1 Push int64", "1 Push int64\n2 Note string")
		n1, err := start("n1", newer)
		if err != nil {
			t.Fatal(err)
		}
		n2, err := start("n2", newer)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*stackMachine{n1, n2} {
			if _, err := m.Propose(t.Context(), move{push: 1}); err != nil {
				t.Fatal(err)
			}
		}
		added := false
		add := func() {
			t.Helper()
			for i := 0; !added; i++ {
				pause()
				m := []*stackMachine{n1, n2}[i%2]
				err := m.ChangeMembers(t.Context(), raft.Change{Kind: raft.AddVoter, Name: "n3", Address: "host-n3:1"})
				if added = err == nil; !added && !errors.Is(err, fsm.ErrNotLeader) {
					t.Fatal(err)
				}
			}
		}
		for what, d := range map[string]fsm.Definition[stack, move, int64]{
			"an older program": of(),
			"another type":     of("Push int64", "Push string"),
		} {
			m, err := start("n3", d)
			if err == nil { // its log was empty
				add()
				if _, err = m.Propose(t.Context(), move{push: 1}); err == nil {
					t.Fatalf("%s must refuse a proposal", what)
				}
				if err = m.Close(); !errors.Is(err, fsm.ErrIncompatible) {
					t.Errorf("%s must stop with ErrIncompatible, got %v", what, err)
				}
			} else if !errors.Is(err, fsm.ErrIncompatible) {
				t.Errorf("%s: %v", what, err)
			}
			for _, m := range []*stackMachine{n1, n2} {
				if _, err := m.Propose(t.Context(), move{push: 1}); err != nil {
					t.Errorf("another member, with %s on n3: %v", what, err)
				}
			}
		}
		if _, err := start("n3", newer); err != nil {
			t.Errorf("the right program: %v", err)
		}
	})
}
