package fsm_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
	"pgregory.net/rapid"
)

type replicated = fsm.Replicated[tape, note, answer]

// TestReplicasAreEqual gives random entries to a naive model and to three replicas. The
// first one only applies them. The second one sometimes makes snapshots. The third one
// is restored from an older snapshot and the entries since.
func TestReplicasAreEqual(t *testing.T) {
	speed.Checks(t, 40, 100, 10_000)
	rapid.Check(t, func(t *rapid.T) {
		x := newReplicas(t)
		t.Repeat(map[string]func(*rapid.T){
			"entry":    func(t *rapid.T) { x.entry(t, rapid.IntRange(0, 5).Draw(t, "commands")) },
			"entries":  func(t *rapid.T) { x.entry(t, rapid.IntRange(0, 5).Draw(t, "commands")) },
			"large":    func(t *rapid.T) { x.entry(t, rapid.IntRange(0, 120).Draw(t, "commands")) },
			"snapshot": x.snapshot,
			"keep":     x.keep,
			"restart":  x.restart,
			"install":  x.install,
			"":         x.check,
		})
		x.equalSnapshots(t)
	})
}

// replicas are replicas of one log.
type replicas struct {
	options                       fsm.Options
	model                         naive
	plain, snapshooter, restarted *replicated
	log                           []logEntry // by index; some indices have no entry
	index                         uint64
	now                           time.Duration
	kept                          []byte // a snapshot
	keptAt                        int    // length of the log at the snapshot
	clients                       []uint64
	orders                        []order // all commands so far
	next                          map[uint64]uint64
	value                         int64
	batch                         fsm.Batch
	lent                          []byte
}

type logEntry struct {
	index, term uint64
	data        []byte
}

func newReplicas(t *rapid.T) *replicas {
	o := fsm.Options{
		Sessions:   rapid.IntRange(1, 6).Draw(t, "sessions"),
		SessionTTL: time.Duration(rapid.IntRange(80, 800).Draw(t, "ttl")),
		Window:     rapid.IntRange(1, 5).Draw(t, "window"),
		Results:    rapid.IntRange(5, 12).Draw(t, "results"),
		Upcoming:   rapid.IntRange(1, 5).Draw(t, "upcoming"),
		ReplayMax:  rapid.IntRange(1, 20).Draw(t, "replay"),
	}
	x := &replicas{options: o, model: naive{options: o}, next: make(map[uint64]uint64), clients: []uint64{0, 1 << 20}}
	x.model.checked = rapid.Bool().Draw(t, "checked")
	x.plain, x.snapshooter, x.restarted = x.new(), x.new(), x.new()
	return x
}

func (x *replicas) new() (r *replicated) {
	fsm.Unchecked(func() { r = fsm.NewReplicated(noteDefinition, x.options) })
	if x.model.checked {
		r = fsm.NewReplicated(noteDefinition, x.options)
	}
	_ = r.Members([]uint64{1}, nil)
	return r
}

// entry makes an entry and applies it to all replicas.
func (x *replicas) entry(t *rapid.T, commands int) {
	x.index += rapid.Uint64Range(1, 3).Draw(t, "further")
	after := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 20, 90, 5000}).Draw(t, "after"))
	x.now += after
	x.batch.Reset(int64(x.now))
	orders := make([]order, commands)
	for i := range orders {
		orders[i] = x.order(t)
		orders[i].append(&x.batch)
	}
	x.sum(t)
	e := logEntry{index: x.index, term: rapid.Uint64Range(1, 300).Draw(t, "term"), data: bytes.Clone(x.batch.Bytes())}
	if rapid.IntRange(0, 20).Draw(t, "empty") == 0 {
		e.data, orders = nil, nil
		x.now -= after
	} else {
		x.model.begin(after)
	}
	x.log = append(x.log, e)

	var want []outcome
	x.model.entry, x.model.term = fsm.Entry{Index: e.index}, e.term
	for i := range orders {
		want = append(want, x.model.run(&orders[i]))
		x.model.entry.Position++
	}
	for _, r := range []*replicated{x.plain, x.snapshooter, x.restarted} {
		got := x.apply(t, r, e)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("entry %d: results (-model +replica):\n%s", e.index, diff)
		}
	}
	for _, o := range want {
		if o.Opened != 0 {
			x.clients = append(x.clients, o.Opened)
		}
	}
}

// sum adds a note to the entry: another mark, or the checksum at the last mark.
func (x *replicas) sum(t *rapid.T) {
	if n := x.plain.Notes(1, 1<<30); n.At != 0 && rapid.Bool().Draw(t, "sum") {
		x.batch.Sum(1, n.At, n.Sum)
	} else if rapid.IntRange(0, 3).Draw(t, "mark") == 0 {
		x.batch.Mark()
	}
}

func (x *replicas) apply(t *rapid.T, r *replicated, e logEntry) (results []outcome) {
	x.lent = append(x.lent[:0], e.data...) // overwritten later: a replica must not keep a reference
	err := r.Apply(e.index, e.term, x.lent, func(client, sequence uint64, a fsm.Applied) {
		results = append(results, outcomeOf(client, sequence, a))
	})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// order draws a command: it opens a session, repeats an earlier command, or is new,
// with a sequence that follows the client's last or is near it.
func (x *replicas) order(t *rapid.T) order {
	switch c := rapid.IntRange(0, 9).Draw(t, "order"); {
	case c <= 1:
		openers := []opener{{client: "ann"}, {client: "ann"}, {client: "bob"}, {client: strings.Repeat("c", 64)}, {client: "dee"}, {node: 1}, {node: 1 << 63}}
		return order{kind: open, client: rapid.Uint64Range(1, 6).Draw(t, "nonce"), opener: rapid.SampledFrom(openers).Draw(t, "opener")}
	case c <= 3 && len(x.orders) > 0:
		recent := x.orders[max(0, len(x.orders)-12):]
		o := rapid.SampledFrom(recent).Draw(t, "again")
		if rapid.Bool().Draw(t, "raised") {
			o.floor++
		}
		return o
	}
	recent := x.clients[max(0, len(x.clients)-5):]
	client := rapid.SampledFrom(recent).Draw(t, "client")
	x.value++
	hows := []how{well, well, well, rejects, rejectsWrapped, panics, failsRevert, panicsRevert, rejectsRevert, tooMuch, unwritable}
	if !x.model.checked {
		hows = append(hows, fails) // it changes the state and fails, in the same way on each replica
	}
	o := order{
		kind:     rapid.SampledFrom([]kind{update, update, update, add, add, add, commit, revert}).Draw(t, "kind"),
		client:   client,
		sequence: uint64(max(0, int64(x.next[client])+rapid.Int64Range(-2, 2).Draw(t, "near"))),
		note:     note{value: x.value, how: rapid.SampledFrom(hows).Draw(t, "how")},
	}
	o.floor = o.sequence - min(o.sequence, rapid.Uint64Range(0, uint64(x.options.Window)).Draw(t, "floor"))
	x.next[client]++
	x.orders = append(x.orders, o)
	return o
}

func (o *order) append(b *fsm.Batch) {
	encoded, _ := noteCodec.Append(nil, &o.note)
	switch o.kind {
	case open:
		if o.opener.node != 0 {
			b.OpenNode(o.opener.node, o.client)
		} else {
			b.Open(o.opener.client, o.client)
		}
	case update:
		b.Update(o.client, o.sequence, o.floor, encoded)
	case add:
		b.Add(o.client, o.sequence, o.floor, encoded)
	case commit:
		b.Commit(o.client, o.sequence, o.floor)
	case revert:
		b.Revert(o.client, o.sequence, o.floor)
	}
}

func (x *replicas) snapshot(t *rapid.T) { snapshotOf(t, x.snapshooter) }

// keep stores a snapshot for a later restart.
func (x *replicas) keep(t *rapid.T) { x.kept, x.keptAt = snapshotOf(t, x.restarted), len(x.log) }

// restart applies the log to a replica that starts from a snapshot, including entries
// that the snapshot contains.
func (x *replicas) restart(t *rapid.T) {
	x.restarted = x.new()
	if x.kept != nil {
		if err := x.restarted.Restore(x.kept); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range x.log[:x.keptAt] {
		if err := x.restarted.Apply(e.index, e.term, e.data, nil); !errors.Is(err, fsm.ErrApplied) {
			t.Fatalf("entry %d is in the snapshot, and was applied: %v", e.index, err)
		}
	}
	for _, e := range x.log[x.keptAt:] {
		x.apply(t, x.restarted, e)
	}
}

// install restores another replica's snapshot, on a newer or on an empty replica.
func (x *replicas) install(t *rapid.T) {
	if rapid.Bool().Draw(t, "new") {
		x.snapshooter = x.new()
	}
	if err := x.snapshooter.Restore(snapshotOf(t, x.restarted)); err != nil {
		t.Fatal(err)
	}
}

func snapshotOf(t *rapid.T, r *replicated) []byte {
	b, err := r.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (x *replicas) check(t *rapid.T) {
	for name, r := range map[string]*replicated{"plain": x.plain, "snapshooter": x.snapshooter, "restarted": x.restarted} {
		r.View(func(s *tape) {
			if !slices.Equal(s.values, x.model.values) {
				t.Fatalf("%s: state %v, want %v", name, s.values, x.model.values)
			}
		})
		if got := r.Upcoming(); !slices.Equal(got, x.model.upcoming) {
			t.Fatalf("%s: upcoming %v, want %v", name, got, x.model.upcoming)
		}
		if r.Applied() != x.index || r.Sessions() != len(x.model.sessions) {
			t.Fatalf("%s: at %d with %d sessions, want %d with %d", name, r.Applied(), r.Sessions(), x.index, len(x.model.sessions))
		}
	}
	x.appliedOnce(t)
}

// appliedOnce checks, independently of the model, that no value is on the tape twice.
func (x *replicas) appliedOnce(t *rapid.T) {
	x.restarted.View(func(s *tape) {
		seen := make(map[int64]bool)
		for _, v := range s.values {
			if seen[v] || v == spoiled && x.model.checked {
				t.Fatalf("%d was applied twice: %v", v, s.values)
			}
			seen[v] = v != spoiled
		}
	})
}

func (x *replicas) equalSnapshots(t *rapid.T) {
	want := snapshotOf(t, x.plain)
	for name, r := range map[string]*replicated{"snapshooter": x.snapshooter, "restarted": x.restarted} {
		if got := snapshotOf(t, r); !bytes.Equal(got, want) {
			t.Fatalf("%s: snapshot\n%q\nwant\n%q", name, got, want)
		}
	}
}
