package nodetests_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/generated_test/upgradenewer"
	"github.com/topogen/topogen/generated_test/upgradeolder"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// ledger is the ledger of either program.
type ledger interface {
	Start(ctx context.Context, host fsm.Host) error
	Wait(ctx context.Context, index uint64) error
	Close() error
}

// programs has the nodes of one group. Each node runs one of the two programs.
type programs struct {
	t          *testing.T
	dir        string
	peers      map[string]string
	transports map[string]transport.Transport
	nodes      map[string]ledger
}

func newPrograms(t *testing.T) *programs {
	p := &programs{t: t, dir: t.TempDir(), peers: newPeers(t), transports: map[string]transport.Transport{}, nodes: map[string]ledger{}}
	memory := transport.NewMemory(transport.MemoryOptions{})
	for name := range p.peers {
		p.transports[name] = joined(t, memory, name)
	}
	t.Cleanup(func() {
		for _, m := range p.nodes {
			_ = m.Close()
		}
	})
	return p
}

// start starts a node with one of the programs.
func (p *programs) start(name string, newer bool) error {
	configure := func(c *raft.Config) {
		c.Node, c.Peers, c.Dir, c.Transport, c.Logger = name, p.peers, p.dir, p.transports[name], slog.New(slog.DiscardHandler)
	}
	var m ledger
	var err error
	if newer {
		m, err = upgradenewer.NewLedger(configure)
	} else {
		m, err = upgradeolder.NewLedger(configure)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.nodes[name] = m
	return m.Start(p.t.Context(), nil)
}

// exchange stops a node and starts it again with one of the programs.
func (p *programs) exchange(name string, newer bool) {
	p.t.Helper()
	if err := p.nodes[name].Close(); err != nil {
		p.t.Fatalf("%s ends with %v", name, err)
	}
	if err := p.start(name, newer); err != nil {
		p.t.Fatalf("%s with the newer program, %t: %v", name, newer, err)
	}
}

// transfer proposes at a node. The older program ignores the note.
func (p *programs) transfer(name, note string) (index uint64, err error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	switch m := p.nodes[name].(type) {
	case *upgradenewer.Ledger:
		r, err := m.ProposeResult(ctx, upgradenewer.Transfer{To: "ann", Cents: 1, Note: note})
		return r.Index, err
	case *upgradeolder.Ledger:
		r, err := m.ProposeResult(ctx, upgradeolder.Transfer{To: "ann", Cents: 1})
		return r.Index, err
	}
	return 0, errors.New("no node")
}

// same checks the states of all nodes.
func (p *programs) same(index uint64, cents int64, notes map[string]string) {
	p.t.Helper()
	for name, node := range p.nodes {
		if err := node.Wait(p.t.Context(), index); err != nil {
			p.t.Fatalf("%s: %v", name, err)
		}
		var err error
		switch m := node.(type) {
		case *upgradenewer.Ledger:
			err = m.Stale(func(a *upgradenewer.Accounts) {
				if a.Cents["ann"] != cents || !reflect.DeepEqual(a.Notes, notes) {
					p.t.Errorf("%s has %v, want %d and %v", name, *a, cents, notes)
				}
			})
		case *upgradeolder.Ledger:
			err = m.Stale(func(a *upgradeolder.Accounts) {
				if a.Cents["ann"] != cents || notes != nil {
					p.t.Errorf("%s, the older program, has %v, want %d and %v", name, *a, cents, notes)
				}
			})
		}
		if err != nil {
			p.t.Fatalf("%s: %v", name, err)
		}
	}
}

// TestUpgradeRollingUpgrade upgrades three nodes to a newer program, one after the other. All nodes
// accept updates at all times. Until all nodes run the newer program, updates with the newer
// field are refused, because older nodes would lose it. Afterwards the older program does not
// start.
func TestUpgradeRollingUpgrade(t *testing.T) {
	for _, order := range [][]string{{"n1", "n2", "n3"}, {"n3", "n2", "n1"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			clustertest.Bubble(t, func(t *testing.T) { upgrade(t, order) })
		})
	}
}

// upgrade upgrades the nodes in an order.
func upgrade(t *testing.T, order []string) {
	p := newPrograms(t)
	for name := range p.peers {
		if err := p.start(name, false); err != nil {
			t.Fatal(err)
		}
	}
	cents := int64(0)
	transfers := func() (index uint64) {
		for _, name := range order {
			var err error
			if index, err = p.transfer(name, ""); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			cents++
		}
		return index
	}
	p.same(transfers(), cents, nil)
	for i, name := range order {
		p.exchange(name, true)
		if i == 1 { // a downgrade is still possible
			p.exchange(name, false)
			p.same(transfers(), cents, nil)
			p.exchange(name, true)
		}
		index := transfers()
		p.same(index, cents, nil)
		if i == len(order)-1 {
			break
		}
		_, err := p.transfer(name, "rent")
		if behind := strings.Join(sorted(order[i+1:]), ", "); !errors.Is(err, fsm.ErrNotYet) || !fsm.OutcomeKnown(err) ||
			!strings.HasSuffix(err.Error(), "field 3 of Transfer, Note,: it must be zero until all nodes run the newer program. Start the newer program on "+behind) {
			t.Fatalf("a note, while %s runs the older program: %v", behind, err)
		}
		p.same(index, cents, nil)
	}
	for _, name := range order {
		index, err := p.transfer(name, name)
		if err != nil {
			t.Fatalf("a note at %s, when all run the newer program: %v", name, err)
		}
		cents++
		p.same(index, cents, map[string]string{"ann": name})
	}
	if err := p.nodes["n1"].Close(); err != nil {
		t.Fatal(err)
	}
	err := p.start("n1", false)
	if err == nil {
		_, err = p.transfer("n1", "")
	}
	if !errors.Is(err, fsm.ErrIncompatible) || !strings.Contains(err.Error(), "start the newer program") {
		t.Errorf("the older program starts again: %v", err)
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
