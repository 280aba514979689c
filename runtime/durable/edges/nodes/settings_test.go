package nodes

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/effects"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/replicated"
	"github.com/topogen/topogen/runtime/raft"
)

// TestVariables sets each variable, and observes what a node does.
func TestVariables(t *testing.T) {
	effects.Check(t, effects.Table{setBackVariable: timeIsSetBack})
}

// yearAhead is a clock that is wrong.
type yearAhead struct{ engine.Clock }

func (c yearAhead) Wall() time.Time { return c.Clock.Wall().Add(365 * 24 * time.Hour) }

// processor is a group of one node.
type processor struct{ config raft.Config }

func (p processor) Neighbor(string) (raft.Config, error) { return p.config, nil }

// timeIsSetBack: the time of a store is a year ahead. Only the variable sets it back.
func timeIsSetBack(t *testing.T) {
	dir, discard := memdir.Quick(t), slog.New(slog.DiscardHandler)
	synctest.Test(t, func(t *testing.T) {
		p := processor{raft.Config{Topology: "shop", Group: "ledger-promises", Dir: dir, Logger: discard}}
		n, err := replicated.Open(replicated.Config{Raft: p.config, Engine: engine.Config{Logger: discard, Clock: yearAhead{engine.NewClock()}}})
		if err != nil {
			t.Fatal(err)
		}
		use(t, &replica{n, alone}, "far")
		for _, set := range []struct {
			text string
			back bool
		}{{"", false}, {"false", false}, {"true", true}} {
			t.Setenv(setBackVariable, set.text)
			var log strings.Builder
			r, err := Open(p, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			use(t, r, "now"+set.text)
			if back := strings.Contains(log.String(), "was ahead of the clocks of the nodes, and was set back"); back != set.back {
				t.Errorf("with %q the time is set back: %v\n%s", set.text, back, log.String())
			}
		}
		t.Setenv(setBackVariable, "maybe")
		if _, err := Open(p, discard); err == nil || !strings.Contains(err.Error(), setBackVariable+" must be true or false") {
			t.Error(err)
		}
	})
}

// use creates a promise and closes the node.
func use(t *testing.T, r edges.Replica, id string) {
	t.Helper()
	result, err := r.Do(t.Context(), protocol.PromiseCreate{ID: id, TimeoutAt: protocol.MaxTime})
	if err != nil || result.Promise == nil {
		t.Errorf("%+v, %v", result, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
