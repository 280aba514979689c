package fsm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/runtime/fsm"
)

// stamped is a note that records the time and position of its entry, and stores in
// itself what its revert needs.
type stamped struct{ note }

func (n *stamped) UpdateAt(t *tape, e fsm.Entry) (int64, error) {
	n.at = e
	t.values = append(t.values, int64(e.Index), int64(e.Position), e.Time)
	if n.how == panics {
		panic("half done")
	}
	return e.Time, nil
}

func (n *stamped) Revert(t *tape) error {
	last := len(t.values) - 3
	if !slices.Equal(t.values[last:], []int64{int64(n.at.Index), int64(n.at.Position), n.at.Time}) {
		return errFailed
	}
	t.values = t.values[:last]
	return nil
}

var stampedCodec = fsm.Codec[stamped]{
	Append:  func(b []byte, n *stamped) ([]byte, error) { return noteCodec.Append(b, &n.note) },
	Consume: func(b []byte, n *stamped) error { return noteCodec.Consume(b, &n.note) },
}

var stampedDefinition = fsm.Definition[tape, stamped, int64]{
	UpdateAt: (*stamped).UpdateAt, Revert: (*stamped).Revert,
	StateCodec: tapeCodec, UpdateCodec: stampedCodec, ResultCodec: int64Codec,
}

var int64Codec = fsm.Codec[int64]{
	Append:  func(b []byte, v *int64) ([]byte, error) { return binary.AppendVarint(b, *v), nil },
	Consume: func(b []byte, v *int64) error { *v, _ = binary.Varint(b); return nil },
}

// TestTimeOfEntries: the log's time follows the proposers' clocks and never goes back.
// It is the same when an update is applied again, and in a snapshot.
func TestTimeOfEntries(t *testing.T) {
	newOne := func() *fsm.Replicated[tape, stamped, int64] {
		return fsm.NewReplicated(stampedDefinition, fsm.Options{})
	}
	r := newOne()
	apply := func(index uint64, now int64, notes ...note) {
		t.Helper()
		var b fsm.Batch
		b.Reset(now)
		b.Open("test", index)
		for i, n := range notes {
			encoded, _ := noteCodec.Append(nil, &n)
			b.Add(index<<20, uint64(i)+1, 1, encoded)
		}
		if err := r.Apply(index, 1, b.Bytes(), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...int64) {
		t.Helper()
		r.View(func(s *tape) {
			if !slices.Equal(want, s.values) {
				t.Errorf("state %v, want %v", s.values, want)
			}
		})
	}
	apply(1, 100, note{})
	apply(2, 50, note{}, note{how: panics}, note{})
	want(1, 1, 100, 2, 1, 100, 2, 3, 100)
	b, err := r.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	r = newOne()
	if err := r.Restore(b); err != nil {
		t.Fatal(err)
	}
	apply(3, 70, note{})
	want(1, 1, 100, 2, 1, 100, 2, 3, 100, 3, 1, 100)
	var batch fsm.Batch
	batch.Open("test", 4)
	batch.Revert(4<<20, 1, 1)
	if err := r.Apply(4, 1, batch.Bytes(), nil); err != nil {
		t.Fatal(err)
	}
	want()
}

// TestTimeInMemory: in memory an update gets the time of the clock, which never goes back.
func TestTimeInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := fsm.NewMachine(stampedDefinition)
		m.Add(stamped{}, stamped{})
		begin := time.Now().UnixNano()
		for range 2 {
			if _, err := m.Apply(1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if diff := cmp.Diff([]int64{1, 0, begin, 2, 0, begin + 1e9}, m.State().values); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRevertFails: if the newest update can be undone and the next one cannot, nothing
// is reverted, for each kind of error.
func TestRevertFails(t *testing.T) {
	for _, how := range []how{failsRevert, panicsRevert, rejectsRevert} {
		r := newTape()
		var b fsm.Batch
		b.Open("test", 0)
		notes := []note{{value: 1}, {value: 2, how: how}, {value: 3}}
		for i := range notes {
			encoded, _ := noteCodec.Append(nil, &notes[i])
			b.Add(1<<20, uint64(i)+1, 1, encoded)
		}
		b.Revert(1<<20, 4, 1)
		var err error
		if err := r.Apply(1, 1, b.Bytes(), func(_, _ uint64, a fsm.Applied) { err = a.Err }); err != nil {
			t.Fatal(err)
		}
		if err == nil || !slices.Equal(r.Upcoming(), notes) {
			t.Errorf("%d: error %v, upcoming %v", how, err, r.Upcoming())
		}
		r.View(func(s *tape) {
			if !slices.Equal(s.values, []int64{1, 2, 3}) {
				t.Errorf("%d: state %v", how, s.values)
			}
		})
	}
}

// TestFewResults: the session whose command is being answered is never evicted.
func TestFewResults(t *testing.T) {
	r := fsm.NewReplicated(noteDefinition, fsm.Options{Results: 1, Window: 4})
	var b fsm.Batch
	b.Open("test", 0)
	for i := range uint64(4) {
		b.Commit(1<<20, i+1, 1)
	}
	if err := r.Apply(1, 1, b.Bytes(), func(_, _ uint64, a fsm.Applied) {
		if a.Err != nil {
			t.Error(a.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestFirstAnswerIsTheError: the first answer is the error itself, and a repeated
// answer holds the remembered text, also after a restart.
func TestFirstAnswerIsTheError(t *testing.T) {
	r := fsm.NewReplicated(noteDefinition, fsm.Options{})
	var b fsm.Batch
	b.Open("test", 7)
	for i, how := range []how{rejects, rejectsWrapped, panics} {
		encoded, _ := noteCodec.Append(nil, &note{how: how})
		b.Update(1<<20, uint64(i)+1, 1, encoded)
	}
	var got []error
	results := func(_, sequence uint64, a fsm.Applied) {
		if sequence > 0 {
			got = append(got, a.Err)
		}
	}
	for index := range uint64(2) {
		if err := r.Apply(index+1, 1, b.Bytes(), results); err != nil {
			t.Fatal(err)
		}
		snapshot, err := r.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
	}
	first, again := got[:3], got[3:]
	if first[0] != errRejected || !errors.Is(first[1], errRejected) || !errors.Is(first[2], fsm.ErrPanicked) {
		t.Errorf("first %v", first)
	}
	for i := range again {
		if again[i].Error() != first[i].Error() || errors.Is(again[i], fsm.ErrPanicked) != (i == 2) {
			t.Errorf("repeated answer %v, first answer %v", again[i], first[i])
		}
	}
}

// TestLongErrors: only a part of a long error text is remembered.
func TestLongErrors(t *testing.T) {
	r := fsm.NewReplicated(fsm.Definition[string, verbose, struct{}]{
		Update: fsm.NoResult((*verbose).Update), StateCodec: stringCodec, UpdateCodec: verboseCodec,
	}, fsm.Options{})
	var b fsm.Batch
	b.Open("test", 0)
	b.Update(1<<20, 1, 1, bytes.Repeat([]byte("x"), 1<<20))
	b.Update(1<<20, 2, 1, nil)
	for index := range uint64(2) {
		if err := r.Apply(index+1, 1, b.Bytes(), func(_, sequence uint64, a fsm.Applied) {
			if a.Err != nil && index == 1 && len(a.Err.Error()) > 1000 {
				t.Errorf("%d bytes were remembered", len(a.Err.Error()))
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := r.AppendSnapshot(nil); err != nil || len(s) > 1000 {
		t.Errorf("a snapshot of %d bytes, %v", len(s), err)
	}
}

// verbose is an update that returns itself as the error. An empty one returns an error
// that panics.
type verbose string

func (v *verbose) Update(*string) error { return v }
func (v *verbose) Error() string {
	if *v == "" {
		panic("no text")
	}
	return string(*v)
}

var (
	stringCodec = fsm.Codec[string]{
		Append:  func(b []byte, s *string) ([]byte, error) { return append(b, *s...), nil },
		Consume: func(b []byte, s *string) error { *s = strings.Clone(string(b)); return nil },
	}
	verboseCodec = fsm.Codec[verbose]{
		Append:  func(b []byte, v *verbose) ([]byte, error) { return append(b, *v...), nil },
		Consume: func(b []byte, v *verbose) error { *v = verbose(b); return nil },
	}
)

// TestApplyAllocatesNothing: Apply does not allocate once its buffers have grown, if
// the codec does not.
func TestApplyAllocatesNothing(t *testing.T) {
	var u *updates
	fsm.Unchecked(func() { u = newUpdates(3, 1000) })
	for range 200 {
		u.apply(t, u.entry(1))
	}
	entries := make([][]byte, 101)
	for i := range entries {
		entries[i] = u.entry(1)
	}
	i := 0
	allocs := testing.AllocsPerRun(len(entries)-1, func() { u.apply(t, entries[i]); i++ })
	if allocs > 1 { // an entry; replay.entries grows now and then
		t.Errorf("%v allocations for an entry of 1000 updates", allocs)
	}
}
