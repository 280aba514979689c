package fsm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
)

// hostile is a log of one entry for fuzzing, and its effect.
func hostile() (entry, snapshot []byte) {
	r := newTape()
	var b fsm.Batch
	b.Open("test", 9)
	for i := range 12 {
		encoded, _ := noteCodec.Append(nil, &note{value: int64(i), how: how(i) % hows})
		b.Update(1<<20, uint64(i)+1, 1, encoded)
		b.Add(1<<20, uint64(i)+101, 1, encoded)
	}
	b.Commit(1<<20, 50, 1)
	b.Revert(1<<20, 51, 1)
	b.Add(1<<20, 52, 3, []byte{0, 2, 0, 0, 0})
	entry = b.Bytes()
	if err := r.Apply(1, 1, entry, nil); err != nil {
		panic(err)
	}
	snapshot, err := r.AppendSnapshot(nil)
	if err != nil {
		panic(err)
	}
	return entry, snapshot
}

// newTape returns a replica that accepts all updates, even if they change the state and
// fail.
func newTape() (r *replicated) {
	fsm.Unchecked(func() { r = fsm.NewReplicated(noteDefinition, fsm.Options{}) })
	return r
}

// FuzzApply applies arbitrary data. It is refused, or makes a state that a snapshot can
// hold.
func FuzzApply(f *testing.F) {
	entry, _ := hostile()
	f.Add(entry)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, entry []byte) {
		r := newTape()
		var err error
		allocated.Within(t, most(len(entry)), func() { err = r.Apply(1, 1, entry, func(uint64, uint64, fsm.Applied) {}) })
		if err != nil {
			if !errors.Is(err, fsm.ErrDamaged) {
				t.Fatalf("%v does not match ErrDamaged", err)
			}
			if again := r.Apply(2, 1, nil, nil); again != err {
				t.Fatalf("after %v: %v", err, again)
			}
			return
		}
		b, err := r.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		restoredIs(t, b, b)
	})
}

// FuzzRestore restores arbitrary data. Either it is refused and nothing has changed, or
// the restored replica writes a snapshot that restores to the same.
func FuzzRestore(f *testing.F) {
	_, snapshot := hostile()
	f.Add(snapshot)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := newTape()
		entry, before := hostile()
		if err := r.Apply(1, 1, entry, nil); err != nil {
			t.Fatal(err)
		}
		var err error
		allocated.Within(t, most(len(b)), func() { err = r.Restore(b) })
		after, failure := r.AppendSnapshot(nil)
		if failure != nil {
			t.Fatal(failure)
		}
		if err == nil {
			restoredIs(t, after, after)
		} else if !errors.Is(err, fsm.ErrDamaged) || !bytes.Equal(before, after) {
			t.Fatalf("%v: the snapshot was\n%q\nand is\n%q", err, before, after)
		}
	})
}

func restoredIs(t *testing.T, b, want []byte) {
	t.Helper()
	r := newTape()
	if err := r.Restore(b); err != nil {
		t.Fatalf("own snapshot: %v", err)
	}
	if got, err := r.AppendSnapshot(nil); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("restored %q, want %q (%v)", got, want, err)
	}
}

// most limits what a replica allocates for an input. The factor is high because a command that opens
// a session has three bytes and takes two hundred. The first session and the first result allocate blocks for many.
func most(length int) int { return 512<<10 + 400*length }

// TestCutSnapshots: a truncated snapshot is refused at every length. The codec of the
// state must check the state itself.
func TestCutSnapshots(t *testing.T) {
	_, snapshot := hostile()
	r := newTape()
	if err := r.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	state := 0
	r.View(func(s *tape) {
		b, _ := tapeCodec.Append(nil, s)
		state = len(b)
	})
	for n := range len(snapshot) - state {
		if err := newTape().Restore(snapshot[:n]); !errors.Is(err, fsm.ErrDamaged) {
			t.Fatalf("%d bytes of %d: %v", n, len(snapshot), err)
		}
	}
}

// TestDamage: each kind of damage is refused with its reason.
func TestDamage(t *testing.T) {
	good := newTape()
	if err := good.Apply(5, 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		index uint64
		entry []byte
		want  error
	}{
		{"another version", 6, []byte{9, 0}, fsm.ErrDamaged},
		{"no time", 6, []byte{1}, fsm.ErrDamaged},
		{"unknown command", 6, []byte{1, 0, 77, 1}, fsm.ErrDamaged},
		{"opened as in version 2", 6, []byte{3, 0, 1, 7}, fsm.ErrDamaged},
		{"opened as in version 3", 6, []byte{2, 0, 7, 7, 1}, fsm.ErrDamaged},
		{"a client without a name", 6, []byte{3, 0, 6, 7, 0}, fsm.ErrDamaged},
		{"a client with a long name", 6, append([]byte{3, 0, 6, 7, 65}, make([]byte, 65)...), fsm.ErrDamaged},
		{"a node 0", 6, []byte{3, 0, 7, 7, 0}, fsm.ErrDamaged},
		{"long length", 6, append([]byte{1, 0, 2, 1, 1, 0}, 0xff, 0xff, 0xff, 0xff, 0x0f), fsm.ErrDamaged},
		{"number without end", 6, append([]byte{1, 0}, bytes.Repeat([]byte{0xff}, 20)...), fsm.ErrDamaged},
		{"index too large", 1 << 50, nil, fsm.ErrDamaged},
		{"applied before", 5, nil, fsm.ErrApplied},
		{"applied before", 1, nil, fsm.ErrApplied},
	} {
		r := newTape()
		b, _ := good.AppendSnapshot(nil)
		if err := r.Restore(b); err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(c.index, 1, c.entry, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if _, err := r.AppendSnapshot(nil); (err == nil) != (c.want == fsm.ErrApplied) {
			t.Errorf("%s: a snapshot after the damage: %v", c.name, err)
		}
		if err := r.Restore(b); err != nil {
			t.Errorf("%s: a snapshot of another replica: %v", c.name, err)
		}
		if err := r.Apply(6, 1, nil, nil); err != nil {
			t.Errorf("%s: after a snapshot of another replica: %v", c.name, err)
		}
	}
}

// TestDamagedSessions: a snapshot with sessions that no log can produce is refused.
func TestDamagedSessions(t *testing.T) {
	const client, index = 3<<20 | 1, 7
	type numbers = []uint64
	for _, c := range []struct {
		name     string
		sessions numbers
		ok       bool
	}{
		{"valid", numbers{2, client, 5, 2 /**/, 0, 4, 1, 0 /**/, 9, 7, 1, 0 /**/, client + 1, 1, 0}, true},
		{"too many sessions", numbers{10_001}, false},
		{"a client twice", numbers{2, client, 5, 0, client, 6, 0}, false},
		{"a client of a later entry", numbers{1, 8 << 20, 5, 0}, false},
		{"client 0", numbers{1, 0, 5, 0}, false},
		{"floor 0", numbers{1, client, 0, 0}, false},
		{"a sequence twice", numbers{1, client, 5, 2, 3, 4, 1, 0, 3, 4, 1, 0}, false},
		{"sequences that descend", numbers{1, client, 5, 2, 3, 4, 1, 0, 2, 4, 1, 0}, false},
		{"a sequence outside of the window", numbers{1, client, 5, 1, 4096, 4, 1, 0}, false},
		{"a sequence that overflows", numbers{1, client, 1<<64 - 2, 1, 4, 4, 1, 0}, false},
		{"a result of entry 0", numbers{1, client, 5, 1, 3, 0, 1, 0}, false},
		{"a result of a later entry", numbers{1, client, 5, 1, 3, 8, 1, 0}, false},
		{"an unknown failure", numbers{1, client, 5, 1, 3, 4, 1, 9, 0}, false},
	} {
		b := []byte{1}
		for _, v := range append(numbers{10_000, 4096, 1 << 20, 1 << 20, index, 0}, c.sessions...) {
			b = binary.AppendUvarint(b, v)
		}
		b = append(b, 1, 0, 0, 0, 0) // a Machine without updates, and an empty tape
		if err := newTape().Restore(b); (err == nil) != c.ok || err != nil && !errors.Is(err, fsm.ErrDamaged) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// noSums is the part of a snapshot for announcements and marks, if the log has none.
var noSums = make([]byte, 13)

// TestDamagedOpeners: a snapshot with openers that no log can produce is refused.
func TestDamagedOpeners(t *testing.T) {
	const client, index, clock = 3<<20 | 1, 7, 1000
	named := func(number uint64, name string, nonce, age uint64) []byte {
		b := append(binary.AppendUvarint(nil, number), 1, byte(len(name)))
		b = binary.AppendUvarint(append(b, name...), nonce)
		return append(binary.AppendUvarint(b, age), 1, 0)
	}
	node := func(number, node, age uint64) []byte {
		b := binary.AppendUvarint(append(binary.AppendUvarint(nil, number), 2), node)
		return append(binary.AppendUvarint(append(b, 9), age), 1, 0)
	}
	many := func(n int, of func(i uint64) []byte) (list [][]byte) {
		for i := range uint64(n) {
			list = append(list, of(i))
		}
		return list
	}
	for _, c := range []struct {
		name     string
		sessions [][]byte
		ok       bool
	}{
		{"valid", [][]byte{named(client, "ann", 1, 1000), named(client+1, "ann", 2, 5), node(client+2, 4, 900)}, true},
		{"older than the clock", [][]byte{named(client, "ann", 1, 1001)}, false},
		{"in the wrong order", [][]byte{named(client, "ann", 1, 5), named(client+1, "bob", 1, 6)}, false},
		{"nodes in the wrong order", [][]byte{node(client, 4, 5), node(client+1, 5, 6)}, false},
		{"a number twice", [][]byte{named(client, "ann", 1, 5), node(client, 5, 6)}, false},
		{"no name", [][]byte{named(client, "", 1, 5)}, false},
		{"a long name", [][]byte{named(client, strings.Repeat("x", 65), 1, 5)}, false},
		{"node 0", [][]byte{node(client, 0, 5)}, false},
		{"the maximum of a client", many(4, func(i uint64) []byte { return named(client+i, "ann", i, 5) }), true},
		{"too many of a client", many(5, func(i uint64) []byte { return named(client+i, "ann", i, 5) }), false},
		{"too many of a node", many(3, func(i uint64) []byte { return node(client+i, 4, 5) }), false},
		{"the maximum of nodes", many(256, func(i uint64) []byte { return node(client+i, i+1, 5) }), true},
		{"too many of nodes", many(257, func(i uint64) []byte { return node(client+i, i+1, 5) }), false},
		{"too many of clients", many(10_001, func(i uint64) []byte { return named(client+i, fmt.Sprint(i), 1, 5) }), false},
		{"an unknown opener", [][]byte{append(binary.AppendUvarint(nil, client), 3, 1, 1, 1, 1, 0)}, false},
	} {
		b := []byte{3}
		for _, v := range []uint64{10_000, 4096, 1 << 20, 1 << 20, uint64(time.Hour), index, 0, 0} {
			b = binary.AppendUvarint(b, v)
		}
		b = append(b, noSums...)
		b = binary.AppendUvarint(binary.AppendUvarint(b, clock), uint64(len(c.sessions)))
		b = append(append(b, bytes.Join(c.sessions, nil)...), 1, 0, 0, 0, 0)
		r := newTape()
		if err := r.Restore(b); (err == nil) != c.ok || err != nil && !errors.Is(err, fsm.ErrDamaged) {
			t.Errorf("%s: %v", c.name, err)
		} else if c.ok && r.Sessions() != len(c.sessions) {
			t.Errorf("%s: %d sessions", c.name, r.Sessions())
		}
	}
}

// TestTooManyCommands: an entry with more commands than positions is refused.
func TestTooManyCommands(t *testing.T) {
	var b fsm.Batch
	for range fsm.CommandsMax {
		b.Commit(1, 1, 1)
	}
	entry := bytes.Clone(b.Bytes())
	if err := newTape().Apply(1, 1, entry, nil); err != nil || b.Len() != fsm.CommandsMax {
		t.Errorf("%d commands: %v", b.Len(), err)
	}
	if err := newTape().Apply(1, 1, append(entry, entry[2:6]...), nil); !errors.Is(err, fsm.ErrDamaged) {
		t.Errorf("one more: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the batch accepted another command")
		}
	}()
	b.Commit(1, 1, 1)
}

// TestOtherLimits: a snapshot with other limits is refused.
func TestOtherLimits(t *testing.T) {
	_, snapshot := hostile()
	for _, o := range []fsm.Options{{Sessions: 3}, {Window: 3}, {Results: 5000}, {Upcoming: 3}, {SessionTTL: time.Minute}} {
		if err := fsm.NewReplicated(noteDefinition, o).Restore(snapshot); !errors.Is(err, fsm.ErrDamaged) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := fsm.NewReplicated(noteDefinition, fsm.Options{ReplayMax: 3}).Restore(snapshot); err != nil {
		t.Errorf("ReplayMax may differ between replicas: %v", err)
	}
}

// TestCodecsThatFail: a codec that fails or panics stops only the operation that called
// it.
func TestCodecsThatFail(t *testing.T) {
	broken := false
	state := fsm.Codec[tape]{
		Append: func(b []byte, s *tape) ([]byte, error) {
			if broken {
				return nil, errFailed
			}
			return tapeCodec.Append(b, s)
		},
		Consume: tapeCodec.Consume,
	}
	update := fsm.Codec[note]{Append: noteCodec.Append, Consume: func(b []byte, n *note) error {
		if len(b) == 0 {
			panic("empty")
		}
		return noteCodec.Consume(b, n)
	}}
	r := fsm.NewReplicated(with(state, update), fsm.Options{ReplayMax: 2})
	var b fsm.Batch
	b.Open("test", 0)
	if err := r.Apply(1, 1, b.Bytes(), nil); err != nil {
		t.Fatal(err)
	}
	// A replica whose state cannot be encoded goes on from its existing checkpoint.
	broken = true
	for i := range uint64(20) {
		b = fsm.Batch{}
		encoded, _ := noteCodec.Append(nil, &note{value: int64(i), how: map[bool]how{true: panics, false: well}[i%5 == 4]})
		b.Update(1<<20, i+1, i+1, encoded)
		if err := r.Apply(i+2, 1, b.Bytes(), nil); err != nil {
			t.Fatal(err)
		}
	}
	r.View(func(s *tape) {
		if len(s.values) != 16 {
			t.Errorf("state %v", s.values)
		}
	})
	if _, err := r.AppendSnapshot(nil); !errors.Is(err, errFailed) {
		t.Errorf("snapshot: %v", err)
	}
	b = fsm.Batch{}
	b.Update(1<<20, 99, 99, nil)
	if err := r.Apply(99, 1, b.Bytes(), nil); !errors.Is(err, fsm.ErrDamaged) {
		t.Errorf("an update that cannot be decoded: %v", err)
	}
}

// TestDivergence: an update that depends on more than the state is detected when it is
// applied again.
func TestDivergence(t *testing.T) {
	calls := 0
	d := fsm.Definition[*int, moody, struct{}]{
		Update: fsm.NoResult((*moody).Update),
		StateCodec: fsm.Codec[*int]{
			Append:  func(b []byte, s **int) ([]byte, error) { return b, nil },
			Consume: func(b []byte, s **int) error { *s = &calls; return nil },
		},
		UpdateCodec: fsm.Codec[moody]{
			Append:  func(b []byte, u *moody) ([]byte, error) { return append(b, byte(*u)), nil },
			Consume: func(b []byte, u *moody) error { *u = moody(b[0]); return nil },
		},
	}
	var r *fsm.Replicated[*int, moody, struct{}]
	fsm.Unchecked(func() { r = fsm.NewReplicated(d, fsm.Options{}) }) // without the checks, the update is applied again only after the panic
	b, _ := r.AppendSnapshot(nil)
	if err := r.Restore(b); err != nil {
		t.Fatal(err)
	}
	var batch fsm.Batch
	batch.Open("test", 0)
	batch.Update(1<<20, 1, 1, []byte{1})
	batch.Update(1<<20, 2, 1, []byte{0})
	if err := r.Apply(1, 1, batch.Bytes(), nil); !errors.Is(err, fsm.ErrDiverged) || !errors.Is(err, errFailed) {
		t.Errorf("%v", err)
	}
}

// moody succeeds only the first time; moody(0) always panics.
type moody byte

func (m *moody) Update(calls **int) error {
	if **calls++; *m == 0 {
		panic("half done")
	} else if **calls > 1 {
		return errFailed
	}
	return nil
}

// TestManyThatFail: many failing updates do not replay the whole entry each.
func TestManyThatFail(t *testing.T) {
	var applied int
	state := fsm.Codec[int]{
		Append:  func(b []byte, s *int) ([]byte, error) { return binary.AppendVarint(b, int64(*s)), nil },
		Consume: func(b []byte, s *int) error { v, _ := binary.Varint(b); *s = int(v); return nil },
	}
	r := fsm.NewReplicated(fsm.Definition[int, counted, struct{}]{
		Update: fsm.NoResult((*counted).Update), StateCodec: state,
		UpdateCodec: fsm.Codec[counted]{
			Append:  func(b []byte, u *counted) ([]byte, error) { return b, nil },
			Consume: func(b []byte, u *counted) error { *u = counted{applied: &applied, fails: len(b) > 0}; return nil },
		},
	}, fsm.Options{})
	var b fsm.Batch
	b.Open("test", 0)
	n := speed.Pick(t, 1000, 4000, 4000)
	for i := range uint64(n) {
		b.Update(1<<20, 2*i+1, 2*i+1, nil)
		b.Update(1<<20, 2*i+2, 2*i+2, []byte("fails"))
	}
	if err := r.Apply(1, 1, b.Bytes(), nil); err != nil {
		t.Fatal(err)
	}
	r.View(func(s *int) {
		if *s != n {
			t.Errorf("state %d, want %d", *s, n)
		}
	})
	if applied > 100*n {
		t.Errorf("%d updates applied %d times", 2*n, applied)
	}
}

type counted struct {
	applied *int
	fails   bool
}

func (c *counted) Update(s *int) error {
	*c.applied++
	*s++
	if c.fails {
		panic("half done")
	}
	return nil
}
