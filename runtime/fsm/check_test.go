package fsm_test

import (
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// TestAnErrorCostsNothing: outside of tests, an update that returns an error causes no
// encoding or decoding of the state.
func TestAnErrorCostsNothing(t *testing.T) {
	calls := 0
	counting := fsm.Codec[tape]{
		Append:  func(b []byte, s *tape) ([]byte, error) { calls++; return tapeCodec.Append(b, s) },
		Consume: func(b []byte, s *tape) error { calls++; return tapeCodec.Consume(b, s) },
	}
	var r *replicated
	fsm.Unchecked(func() { r = fsm.NewReplicated(with(counting, noteCodec), fsm.Options{}) })
	if _, err := r.AppendSnapshot(nil); err != nil {
		t.Fatal(err)
	}
	calls = 0
	if results := applyNotes(t, r, note{value: 1}, note{how: rejects}, note{how: rejectsWrapped}, note{value: 2}); !errors.Is(results[1], errRejected) || !errors.Is(results[2], errRejected) {
		t.Errorf("results %v", results)
	}
	if calls > 0 {
		t.Errorf("the state was written or read %d times", calls)
	}
	if applyNotes(t, r, note{how: panics}); calls == 0 {
		t.Error("a panic was undone without reading the state")
	}
}

// applyNotes opens a session and applies updates in one entry.
func applyNotes(t *testing.T, r *replicated, notes ...note) (errs []error) {
	t.Helper()
	errs, err := tryNotes(r, notes...)
	if err != nil {
		t.Fatal(err)
	}
	return errs
}

func tryNotes(r *replicated, notes ...note) (errs []error, err error) {
	index := r.Applied() + 1
	var b fsm.Batch
	b.Open("notes", index)
	for i := range notes {
		encoded, _ := noteCodec.Append(nil, &notes[i])
		b.Update(index<<20, uint64(i)+1, 1, encoded)
	}
	err = r.Apply(index, 1, b.Bytes(), func(_, sequence uint64, a fsm.Applied) {
		if sequence > 0 {
			errs = append(errs, a.Err)
		}
	})
	return errs, err
}

// TestBrokenPromise: in tests, an update that changes the state and returns an error
// stops the state machine, with a log and in memory. The error names the type.
func TestBrokenPromise(t *testing.T) {
	want := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, fsm.ErrChanged) || !strings.Contains(err.Error(), `fsm_test.note, error "failed: 7"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
	broken := note{value: 7, how: fails}
	r := fsm.NewReplicated(noteDefinition, fsm.Options{})
	applyNotes(t, r, note{value: 1})
	_, err := tryNotes(r, note{value: 2}, broken, note{value: 3})
	want("with a log", err)
	if _, err := tryNotes(r, note{value: 4}); !errors.Is(err, fsm.ErrChanged) {
		t.Errorf("after it: %v", err)
	}

	m := fsm.NewMachine(noteDefinition)
	m.Add(note{value: 1}, broken)
	n, err := m.Apply(5)
	want("in memory", err)
	if n != 1 {
		t.Errorf("%d were applied before it", n)
	}

	p, h := started(t)
	_, err = p.Propose(t.Context(), broken)
	want("proposed by a caller", err)
	<-h.woken
	want("the instance", p.Answer(h))

	p, _ = started(t)
	want("proposed by a message", p.ReceiveProposal(t.Context(), &fsm.Proposal[note]{Update: broken}))
}

// TestBrokenPromiseAt is the same for UpdateAt.
func TestBrokenPromiseAt(t *testing.T) {
	m := fsm.NewMachine(fsm.Definition[tape, late, struct{}]{UpdateAt: func(l *late, t *tape, e fsm.Entry) (struct{}, error) { return struct{}{}, l.UpdateAt(t, e) }})
	m.Add(late{}, late{fails: true})
	if n, err := m.Apply(5); n != 1 || !errors.Is(err, fsm.ErrChanged) {
		t.Errorf("%d, %v", n, err)
	}
}

type late struct{ fails bool }

func (l *late) UpdateAt(t *tape, e fsm.Entry) error {
	t.values = append(t.values, e.Time)
	if l.fails {
		return errFailed
	}
	return nil
}

// TestBrokenPromiseOutsideOfTests: outside of tests the state machine goes on with the
// changed state, also when a later update panics and is undone.
func TestBrokenPromiseOutsideOfTests(t *testing.T) {
	r := newTape()
	applyNotes(t, r, note{value: 1}, note{value: 7, how: fails}, note{value: 2}, note{how: panics}, note{value: 3})
	r.View(func(s *tape) {
		if len(s.values) != 4 || s.values[1] != spoiled {
			t.Errorf("state %v", s.values)
		}
	})
}

// TestCodecOfTheStateDiffers: the error distinguishes a codec that writes one state in
// several ways from an update that changes the state and fails.
func TestCodecOfTheStateDiffers(t *testing.T) {
	n := byte(0)
	state := fsm.Codec[tape]{
		Append:  func(b []byte, _ *tape) ([]byte, error) { n++; return append(b, n), nil },
		Consume: func([]byte, *tape) error { return nil },
	}
	r := fsm.NewReplicated(with(state, noteCodec), fsm.Options{})
	_, err := tryNotes(r, note{how: rejects})
	if !errors.Is(err, fsm.ErrDiverged) || !strings.Contains(err.Error(), "the codec of the state fsm_test.tape") {
		t.Errorf("%v", err)
	}
}

// TestDivergenceOfAnotherUpdate: the error also distinguishes the divergence of an
// earlier update.
func TestDivergenceOfAnotherUpdate(t *testing.T) {
	calls := int64(0)
	state := tapeCodec
	update := fsm.Codec[note]{Append: noteCodec.Append, Consume: func(b []byte, n *note) error {
		err := noteCodec.Consume(b, n)
		calls++
		n.value += calls
		return err
	}}
	r := fsm.NewReplicated(with(state, update), fsm.Options{})
	if _, err := tryNotes(r, note{value: 1}, note{how: rejects}); !errors.Is(err, fsm.ErrDiverged) || errors.Is(err, fsm.ErrChanged) {
		t.Errorf("%v", err)
	}
}

// TestChecksAreBounded: with a large state, not every failed update is checked.
func TestChecksAreBounded(t *testing.T) {
	read := 0
	codec := fsm.Codec[tape]{
		Append:  func(b []byte, _ *tape) ([]byte, error) { return append(b, make([]byte, 4<<20)...), nil },
		Consume: func(_ []byte, s *tape) error { read++; return nil },
	}
	r := fsm.NewReplicated(with(codec, noteCodec), fsm.Options{})
	notes := make([]note, 2000)
	for i := range notes {
		notes[i].how = rejects
	}
	if _, err := r.AppendSnapshot(nil); err != nil {
		t.Fatal(err)
	}
	applyNotes(t, r, notes...)
	if read < 5 || read > 30 {
		t.Errorf("the state was rebuilt %d times", read)
	}
}

// TestFingerprintsAreBounded: with a large state in memory, not every failed update is
// checked.
func TestFingerprintsAreBounded(t *testing.T) {
	for _, c := range []struct{ values, updates, least, most int }{
		{60, 100_000, 100_000, 100_000}, // a small state is checked each time
		{1000, 1000, 1000, 1000},        // a larger state is checked each time in a short test
		{1000, 1_000_000, 60_000, 70_000},
		{1 << 20, 100_000, 5, 10},
		{9 << 20, 1_000_000, 1, 1}, // too large for any fingerprint
	} {
		if n := fsm.Fingerprints(make([]bool, c.values), c.updates); n < c.least || n > c.most {
			t.Errorf("%d updates of a state with %d values: %d were checked, want %d to %d", c.updates, c.values, n, c.least, c.most)
		}
	}
}

// everything is a state with a field of each kind.
type everything struct {
	b       bool
	i       int8
	u       uint16
	f       float32
	c       complex64
	s       string
	bytes   []byte
	array   [2]byte
	list    []*everything
	byName  map[string]*everything
	any     any
	next    *everything
	when    time.Time
	large   *big.Int
	logger  *slog.Logger
	lock    sync.Mutex
	memo    int `topo:"-"`
	channel chan int
	f0      func()
}

// TestFingerprint: the fingerprint changes with every change of the state, and only
// then.
func TestFingerprint(t *testing.T) {
	made := func() *everything {
		shared := &everything{i: 3}
		e := &everything{
			s: "s", bytes: []byte("ab"), list: []*everything{shared, {u: 1}}, any: int8(1), large: big.NewInt(5),
			byName: map[string]*everything{"a": shared, "b": shared, "c": {i: 1}, "d": {i: 2}}, logger: slog.Default(), when: time.Unix(5, 0),
		}
		e.next = &everything{next: e}
		return e
	}
	one := made()
	want, values, ok := fsm.Fingerprint(one)
	for range 20 {
		if got, _, _ := fsm.Fingerprint(one); got != want || !ok || values > 1000 {
			t.Fatalf("%x and %x are fingerprints of the same state, %d values", got, want, values)
		}
	}
	for name, c := range map[string]struct {
		change func(*everything)
		same   bool
	}{
		"bool":         {change: func(e *everything) { e.b = true }},
		"int":          {change: func(e *everything) { e.i = -1 }},
		"uint":         {change: func(e *everything) { e.u = 9 }},
		"float":        {change: func(e *everything) { e.f = 0.5 }},
		"complex":      {change: func(e *everything) { e.c = 1i }},
		"string":       {change: func(e *everything) { e.s = "t" }},
		"bytes":        {change: func(e *everything) { e.bytes[1] = 'c' }},
		"more bytes":   {change: func(e *everything) { e.bytes = append(e.bytes, 0) }},
		"array":        {change: func(e *everything) { e.array[1] = 1 }},
		"list":         {change: func(e *everything) { e.list = e.list[:1] }},
		"map":          {change: func(e *everything) { delete(e.byName, "c") }},
		"in a map":     {change: func(e *everything) { e.byName["c"], e.byName["d"] = e.byName["d"], e.byName["c"] }},
		"interface":    {change: func(e *everything) { e.any = int16(1) }},
		"in one":       {change: func(e *everything) { e.any = int8(2) }},
		"nil":          {change: func(e *everything) { e.any = nil }},
		"pointer":      {change: func(e *everything) { e.next = nil }},
		"behind one":   {change: func(e *everything) { e.next.i = 4 }},
		"in a ring":    {change: func(e *everything) { e.next.next = &everything{} }},
		"time":         {change: func(e *everything) { e.when = e.when.Add(1) }},
		"channel":      {change: func(e *everything) { e.channel = make(chan int) }},
		"function":     {change: func(e *everything) { e.f0 = func() {} }},
		"other object": {change: func(e *everything) { e.large = big.NewInt(6) }},
		"locked":       {change: func(e *everything) { e.lock.Lock() }, same: true},
		"not written":  {change: func(e *everything) { e.memo++ }, same: true},
		"nothing":      {change: func(*everything) {}, same: true},
	} {
		e := made()
		before, _, _ := fsm.Fingerprint(e)
		c.change(e)
		if after, _, _ := fsm.Fingerprint(e); (after == before) != c.same {
			t.Errorf("%s: equal is %t, want %t", name, after == before, c.same)
		}
	}
}

// TestFingerprintIsBounded: fingerprint gives up on a state with too many values.
func TestFingerprintIsBounded(t *testing.T) {
	list := make([]int, 100_000)
	if _, values, ok := fsm.Fingerprint(&list); ok || values > 1100 {
		t.Errorf("%d values, %t", values, ok)
	}
	type node struct{ a, b *node }
	top := &node{}
	for range 60 {
		top = &node{top, top} // 2^60 paths through it
	}
	if _, values, ok := fsm.Fingerprint(&top); ok || values > 1100 {
		t.Errorf("%d values, %t", values, ok)
	}
}
