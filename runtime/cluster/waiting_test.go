package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/member"
)

// TestFenceIsLogged checks the level of the line about the fence. Each node starts and ends
// without a majority, so this is not a warning.
func TestFenceIsLogged(t *testing.T) {
	joined := &opened{lookup: new(lookup)}
	for _, c := range []struct {
		name   string
		opened *opened
		ending bool
		kind   member.EventKind
		want   string
	}{
		{"start", nil, false, member.EventFenced, "level=DEBUG"},
		{"first majority", &opened{}, false, member.EventUnfenced, "level=DEBUG"},
		{"end", joined, true, member.EventFenced, "level=INFO"},
		{"partition", joined, false, member.EventFenced, "level=WARN"},
		{"end of a partition", joined, false, member.EventUnfenced, "level=INFO"},
	} {
		var logged bytes.Buffer
		n := &Node{log: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		n.opened.Store(c.opened)
		n.ending.Store(c.ending)
		n.observe(member.Event{Kind: c.kind})
		if got := logged.String(); !strings.Contains(got, c.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: got %q, want one line with %s", c.name, got, c.want)
		}
	}
}

// waitingTable is a table that says what it waits for.
type waitingTable struct {
	table.Table
	replica *table.Replica
	reason  string
}

func (w *waitingTable) Waiting() string         { return w.reason }
func (w *waitingTable) Replica() *table.Replica { return w.replica }

// TestWaitingSaysWhatFor checks the line of a node that has not joined yet. It names what
// the address table waits for, and has no empty list of nodes.
func TestWaitingSaysWhatFor(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		first        map[string]string
		want         string
	}{
		{"all are reached", "a leader", map[string]string{"n1": "a"}, "[node=n1 waits_for=a leader]"},
		{"one is missing", "a leader", map[string]string{"n1": "a", "n2": "b"}, "[node=n1 waits_for=a leader not_reached=n2]"},
		{"the engine has nothing to say", "", map[string]string{"n1": "a"}, "[node=n1 waits_for=the first placement, which a first member makes]"},
	} {
		n := &Node{settings: settings{Config: Config{Nodes: c.first}, node: "n1"}}
		n.names = newNames(n)
		n.opened.Store(&opened{table: &waitingTable{replica: table.NewReplica(), reason: c.reason}})
		if got := fmt.Sprint(n.waiting()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
