package fsm_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// summing is a replica of a number that updates add to.
type summing = fsm.Replicated[int64, int64, struct{}]

// newCounter returns a replica. Its updates add a wrong number from an entry on; 0:
// never.
func newCounter(from uint64, by int64, options fsm.Options) *summing {
	codec := fsm.Codec[int64]{
		Append:  func(b []byte, v *int64) ([]byte, error) { return binary.AppendVarint(b, *v), nil },
		Consume: func(b []byte, v *int64) error { *v, _ = binary.Varint(b); return nil },
	}
	r := fsm.NewReplicated(fsm.Definition[int64, int64, struct{}]{
		UpdateAt: func(u, s *int64, e fsm.Entry) (struct{}, error) {
			if *s += *u; from != 0 && e.Index >= from {
				*s += by
			}
			return struct{}{}, nil
		},
		StateCodec: codec, UpdateCodec: codec,
	}, options)
	_ = r.Members([]uint64{1, 2, 3}, nil)
	return r
}

// group holds the replicas of one log, with node numbers from 1 on.
type group struct {
	t     *testing.T
	list  []*summing
	ended []error
	batch fsm.Batch
	index uint64
	log   [][]byte
}

func newGroup(t *testing.T, list ...*summing) *group {
	g := &group{t: t, list: list, ended: make([]error, len(list))}
	g.entry(func(b *fsm.Batch) { b.OpenNode(1, 1) })
	return g
}

// entry applies an entry to all replicas that have not stopped.
func (g *group) entry(fill func(*fsm.Batch)) {
	g.batch.Reset(0)
	fill(&g.batch)
	g.index++
	data := append([]byte(nil), g.batch.Bytes()...)
	g.log = append(g.log, data)
	for i, r := range g.list {
		if g.ended[i] == nil {
			g.ended[i] = r.Apply(g.index, 1, data, nil)
		}
	}
}

// updates applies n entries with an update each.
func (g *group) updates(n int) {
	for range n {
		g.entry(func(b *fsm.Batch) { b.Update(1<<20, g.index, g.index, binary.AppendVarint(nil, 1)) })
	}
}

// compare lets the replicas compare their states: a mark, then the checksum of each
// replica.
func (g *group) compare() {
	g.entry(func(b *fsm.Batch) { b.Mark() })
	for i := range g.list {
		g.writeChecksum(i)
	}
}

// writeChecksum writes the checksum of a replica to the log, unless it is there.
func (g *group) writeChecksum(i int) {
	if n := g.list[i].Notes(uint64(i+1), 1<<30); n.At != 0 && g.ended[i] == nil {
		g.entry(func(b *fsm.Batch) { b.Sum(uint64(i+1), n.At, n.Sum) })
	}
}

// TestStatesAreCompared: a replica that applies an update differently stops at the next
// checksum, and reports between which entries it happened. The others go on. This holds
// for each replica.
func TestStatesAreCompared(t *testing.T) {
	for wrong := range 3 {
		list := []*summing{newCounter(0, 0, fsm.Options{}), newCounter(0, 0, fsm.Options{}), newCounter(0, 0, fsm.Options{})}
		list[wrong] = newCounter(25, 1, fsm.Options{})
		g := newGroup(t, list...)
		g.updates(10)
		g.compare() // at 12
		g.updates(20)
		g.compare() // at 35
		for i, err := range g.ended {
			if i != wrong && err != nil {
				t.Errorf("replica %d stopped with %v, but replica %d is wrong", i, err, wrong)
			}
		}
		err := g.ended[wrong]
		if !errors.Is(err, fsm.ErrStateDiffers) || !strings.Contains(err.Error(), "at entry 35 ") || !strings.Contains(err.Error(), "At entry 12 ") {
			t.Errorf("replica %d, which is wrong from entry 25 on, stopped with %v", wrong, err)
		}
	}
}

// TestNoStateIsRight: if all replicas differ, all stop. If two of three differ and the
// third is silent, they go on, because either of them may be wrong.
func TestNoStateIsRight(t *testing.T) {
	g := newGroup(t, newCounter(0, 0, fsm.Options{}), newCounter(5, 1, fsm.Options{}), newCounter(5, 2, fsm.Options{}))
	g.updates(10)
	g.entry(func(b *fsm.Batch) { b.Mark() })
	g.writeChecksum(0)
	g.writeChecksum(1)
	if err := errors.Join(g.ended...); err != nil {
		t.Errorf("after the checksums of two replicas: %v", err)
	}
	g.writeChecksum(2)
	for i, err := range g.ended {
		if !errors.Is(err, fsm.ErrStateDiffers) {
			t.Errorf("replica %d stopped with %v", i, err)
		}
	}
}

// TestWhoVotes: the checksums of non-voters, a second checksum of the same node, and
// checksums of an earlier mark do not count.
func TestWhoVotes(t *testing.T) {
	g := newGroup(t, newCounter(0, 0, fsm.Options{}), newCounter(0, 0, fsm.Options{}), newCounter(0, 0, fsm.Options{}))
	g.updates(3)
	g.compare()
	old := g.index
	g.updates(3)
	g.entry(func(b *fsm.Batch) { b.Mark() })
	at := g.index
	for _, v := range []struct{ node, at uint64 }{{4, at}, {5, at}, {6, at}, {1, at}, {1, at}, {1, at}, {2, old}, {3, old}} {
		g.entry(func(b *fsm.Batch) { b.Sum(v.node, v.at, 77) })
	}
	if err := errors.Join(g.ended...); err != nil {
		t.Error(err)
	}
	g.entry(func(b *fsm.Batch) { b.Sum(2, at, 77) })
	if err := g.ended[0]; !errors.Is(err, fsm.ErrStateDiffers) {
		t.Errorf("two of three have another checksum: %v", err)
	}
}

// TestSumsOfALog: a program stops at a checksum in the log if its updates have other
// effects than in the program that wrote the log, with and without a snapshot in between. With
// NoChecksums it goes on.
func TestSumsOfALog(t *testing.T) {
	for _, snapshot := range []uint64{0, 5, 12, 13} { // after this entry: 12 has the mark, 13 the checksum
		g := newGroup(t, newCounter(0, 0, fsm.Options{}))
		_ = g.list[0].Members([]uint64{1}, nil)
		var kept []byte
		keep := func() {
			if g.index == snapshot {
				var err error
				if kept, err = g.list[0].AppendSnapshot(nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 10 {
			g.updates(1)
			keep()
		}
		g.entry(func(b *fsm.Batch) { b.Mark() })
		keep()
		g.writeChecksum(0)
		keep()
		g.updates(5)
		again := func(r *summing) (err error) {
			_ = r.Members([]uint64{1}, nil)
			if kept != nil {
				if err := r.Restore(kept); err != nil {
					t.Fatal(err)
				}
			}
			for i := snapshot; i < uint64(len(g.log)) && err == nil; i++ {
				err = r.Apply(i+1, 1, g.log[i], nil)
			}
			return err
		}
		if err := again(newCounter(0, 0, fsm.Options{})); err != nil {
			t.Errorf("the same program, snapshot at %d: %v", snapshot, err)
		}
		err := again(newCounter(7, 1, fsm.Options{}))
		if snapshot < 12 != errors.Is(err, fsm.ErrStateDiffers) {
			t.Errorf("another program, snapshot at %d: %v", snapshot, err)
		}
		if err := again(newCounter(7, 1, fsm.Options{NoChecksums: true})); err != nil {
			t.Errorf("without checksums, snapshot at %d: %v", snapshot, err)
		}
	}
}

// TestMarksAreSeldom: between two marks there are at least the given number of entries,
// and as many bytes as the state has.
func TestMarksAreSeldom(t *testing.T) {
	g := newGroup(t, newCounter(0, 0, fsm.Options{}))
	r := g.list[0]
	due := func(every uint64) bool { return r.Notes(1, every).Mark }
	g.updates(18)
	for _, c := range []struct {
		every uint64
		due   bool
	}{{1, true}, {19, true}, {20, false}, {0, false}} {
		if due(c.every) != c.due {
			t.Errorf("every %d, at %d: %t", c.every, g.index, !c.due)
		}
	}
	if r.Notes(4, 1).Mark {
		t.Error("a node without a vote should set a mark")
	}
	g.compare()
	if due(1) {
		t.Error("a mark is due right after another one")
	}
	for range 20 {
		g.entry(func(b *fsm.Batch) { b.Sum(1, 1, 1) })
	}
	g.updates(15)
	if due(1) {
		t.Error("a mark is due 15 entries after another one, not counting notes")
	}
	g.updates(1)
	if !due(1) {
		t.Error("no mark is due 16 entries after another one")
	}
	large := newTape()
	_ = large.Members([]uint64{1}, nil)
	var b fsm.Batch
	apply := func(index uint64) {
		if err := large.Apply(index, 1, b.Bytes(), nil); err != nil {
			t.Fatal(err)
		}
		b.Reset(0)
	}
	b.OpenNode(1, 1)
	apply(1)
	for i := range uint64(1000) {
		encoded, _ := noteCodec.Append(nil, &note{value: 1 << 40})
		b.Update(1<<20, i+1, i+1, encoded)
	}
	b.Mark()
	apply(2)
	for i := range uint64(100) {
		apply(3 + i)
	}
	if large.Notes(1, 16).Mark {
		t.Error("a mark is due after fewer bytes than the state has")
	}
}
