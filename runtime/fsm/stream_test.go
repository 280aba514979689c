package fsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/fsm"
)

// rack is a state that is encoded in chunks.
type rack struct {
	Title string
	Count map[string]int64
	Names []string
	byID  map[int32]string

	frozen bool // Freeze has been called
}

// place is an update that may panic in the middle.
type place struct {
	key    string
	panics bool
}

func (p *place) Update(s *rack) error {
	if s.Count == nil {
		s.Count, s.byID = map[string]int64{}, map[int32]string{}
	}
	s.Count[p.key]++
	if p.panics {
		panic("half way")
	}
	s.Names = append(s.Names, p.key)
	s.byID[-int32(len(s.Names))] = p.key
	s.Title = p.key
	return nil
}

func (s *rack) equal(o *rack) bool {
	return s.Title == o.Title && maps.Equal(s.Count, o.Count) && slices.Equal(s.Names, o.Names) && maps.Equal(s.byID, o.byID)
}

// largest is the size of the longest chunk that the codec has written.
func rackCodec(largest *int) fsm.Codec[rack] {
	text := func(b []byte, field protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
	}
	return fsm.Codec[rack]{
		Parts: []string{"Count", "Names", "byID"},
		Append: func(b []byte, s *rack) ([]byte, error) {
			begin := len(b)
			if s.Title != "" {
				b = text(b, 1, s.Title)
			}
			for _, k := range slices.Sorted(maps.Keys(s.Count)) {
				b = text(b, 2, fmt.Sprint(s.Count[k], " ", k))
			}
			for _, name := range s.Names {
				b = text(b, 3, name)
			}
			for _, k := range slices.Sorted(maps.Keys(s.byID)) {
				b = text(b, 4, fmt.Sprint(k, " ", s.byID[k]))
			}
			*largest = max(*largest, len(b)-begin)
			return b, nil
		},
		Consume: func(b []byte, s *rack) error {
			if s.Count == nil {
				s.Count, s.byID = map[string]int64{}, map[int32]string{}
			}
			for len(b) > 0 {
				field, _, n := protowire.ConsumeTag(b)
				if n < 0 {
					return io.ErrUnexpectedEOF
				}
				v, m := protowire.ConsumeString(b[n:])
				if m < 0 {
					return io.ErrUnexpectedEOF
				}
				b = b[n+m:]
				number, rest, _ := strings.Cut(v, " ")
				at := int64(0)
				if field == 2 || field == 4 {
					if _, err := fmt.Sscan(number, &at); err != nil {
						return err
					}
				}
				switch field {
				case 1:
					s.Title = v
				case 2:
					s.Count[rest] = at
				case 3:
					s.Names = append(s.Names, v)
				case 4:
					s.byID[int32(at)] = rest
				}
			}
			return nil
		},
	}
}

var placeCodec = fsm.Codec[place]{
	Append:  func(b []byte, p *place) ([]byte, error) { return fmt.Append(b, p.panics, " ", p.key), nil },
	Consume: func(b []byte, p *place) error { _, err := fmt.Sscan(string(b), &p.panics, &p.key); return err },
}

type racks = fsm.Replicated[rack, place, struct{}]

func newRacks(largest *int) *racks {
	return fsm.NewReplicated(fsm.Definition[rack, place, struct{}]{
		Update: fsm.NoResult((*place).Update), StateCodec: rackCodec(largest), UpdateCodec: placeCodec,
	}, fsm.Options{})
}

// put applies an entry with updates.
func put(t *testing.T, r *racks, index uint64, list ...place) (failed []error) {
	t.Helper()
	var b fsm.Batch
	b.Reset(int64(index))
	if index == 1 {
		b.OpenNode(7, 7)
	}
	for i := range list {
		data, err := placeCodec.Append(nil, &list[i])
		if err != nil {
			t.Fatal(err)
		}
		b.Update(1<<20, index<<8+uint64(i), index<<8, data)
	}
	if err := r.Apply(index, 1, b.Bytes(), func(_, _ uint64, a fsm.Applied) {
		if a.Err != nil {
			failed = append(failed, a.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return failed
}

func written(t *testing.T, r *racks) []byte {
	t.Helper()
	write, frozen, err := r.Snapshot()
	var b bytes.Buffer
	if err == nil {
		err = write(&b)
	}
	if err != nil || frozen {
		t.Fatal(err, frozen)
	}
	return b.Bytes()
}

func contents(r *racks) (c rack) {
	r.View(func(s *rack) {
		c = rack{s.Title, maps.Clone(s.Count), slices.Clone(s.Names), maps.Clone(s.byID), false}
	})
	return c
}

// TestStatesInPieces: a large state is written and read in chunks of about 1 MiB, and
// equal states have equal chunks.
func TestStatesInPieces(t *testing.T) {
	speed.NoRace(t)
	for _, n := range []int{0, 1, 2, 100, speed.Pick(t, 12_000, 60_000, 60_000)} {
		largest := 0
		one, other := newRacks(&largest), newRacks(new(int))
		for i := range n {
			key := fmt.Sprintf("%0*d", 1+i%100, i)
			one.View(func(s *rack) { fill(s, key, i) })
		}
		for i := n - 1; i >= 0; i-- {
			key := fmt.Sprintf("%0*d", 1+i%100, i)
			other.View(func(s *rack) { fill(s, key, i) })
		}
		other.View(func(s *rack) { slices.Reverse(s.Names) })
		b := written(t, one)
		if n > 1000 && (len(b) < 80*n || largest > 2<<20) {
			t.Errorf("%d bytes were written in chunks of up to %d", len(b), largest)
		}
		if !bytes.Equal(b, written(t, other)) {
			t.Errorf("%d entries: equal states were written in different bytes", n)
		}
		back := newRacks(new(int))
		install, err := back.Prepare(iotest.HalfReader(bytes.NewReader(b)))
		if err != nil {
			t.Fatal(err)
		}
		if c := contents(back); len(c.Count) != 0 {
			t.Errorf("the state changed before the snapshot was installed")
		}
		install()
		a, c := contents(one), contents(back)
		if !c.equal(&a) {
			t.Errorf("%d entries: the state that was read differs from the written state", n)
		}
		whole, err := one.AppendSnapshot(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := back.Restore(whole); err != nil {
			t.Error(err)
		}
		if c := contents(back); !c.equal(&a) {
			t.Errorf("%d entries: the restored state differs", n)
		}
	}
}

func fill(s *rack, key string, i int) {
	if s.Count == nil {
		s.Count, s.byID = map[string]int64{}, map[int32]string{}
	}
	s.Title = "title"
	s.Count[key] = int64(i)
	s.Names = append(s.Names, key)
	s.byID[int32(i-50)] = key
}

// TestDamagedPieces: damaged chunks are refused and change nothing.
func TestDamagedPieces(t *testing.T) {
	r := newRacks(new(int))
	put(t, r, 1, place{key: "a"}, place{key: "b"})
	good := written(t, r)
	before := contents(r)
	check := func(what string, b []byte) {
		t.Helper()
		if _, err := r.Prepare(bytes.NewReader(b)); !errors.Is(err, fsm.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range good {
		check(fmt.Sprintf("the first %d bytes", i), good[:i])
	}
	check("more behind the end", append(bytes.Clone(good), 1))
	check("no end", good[:len(good)-1])
	check("a long frame", append(bytes.Clone(good[:len(good)-1]), 0xff, 0xff, 0xff, 0xff, 0x7f))
	check("a frame of damage", append(bytes.Clone(good[:len(good)-1]), 1, 0xff, 0))
	for i := range good { // a changed byte leads to an error, or to another state
		b := bytes.Clone(good)
		b[i] ^= 0x5a
		_, _ = r.Prepare(bytes.NewReader(b))
	}
	if _, err := r.Prepare(iotest.ErrReader(io.ErrNoProgress)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("an error of the disk: %v", err)
	}
	if after := contents(r); !after.equal(&before) {
		t.Error("the state has changed")
	}
}

// TestASnapshotIsTheCheckpoint: an update that panics is undone with a snapshot that
// can be opened again, and the entries since then.
func TestASnapshotIsTheCheckpoint(t *testing.T) {
	r := newRacks(new(int))
	want := newRacks(new(int))
	opened := 0
	var b []byte
	open := func() (io.ReadCloser, error) {
		if opened++; b == nil {
			return nil, io.ErrClosedPipe
		}
		return io.NopCloser(bytes.NewReader(b)), nil
	}
	index := uint64(0)
	apply := func(panics bool) {
		t.Helper()
		index++
		list := []place{{key: fmt.Sprint("k", index)}, {key: fmt.Sprint("l", index%3)}}
		put(t, want, index, list...)
		if panics {
			list = slices.Insert(list, 1, place{key: "k1", panics: true})
		}
		if failed := put(t, r, index, list...); panics != (len(failed) == 1 && errors.Is(failed[0], fsm.ErrPanicked)) {
			t.Fatal(failed)
		}
		got, exp := contents(r), contents(want)
		if !got.equal(&exp) {
			t.Fatalf("entry %d: %v, want %v", index, got, exp)
		}
	}
	for range 5 {
		apply(false)
	}
	b = written(t, r)
	at := index
	apply(true) // before the snapshot is the checkpoint
	if opened > 0 {
		t.Error("the snapshot was read before an update panicked")
	}
	apply(false)
	r.Checkpoint(at, int64(len(b)), open)
	r.Checkpoint(at-1, int64(len(b)), func() (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF }) // ignored: there is a newer checkpoint
	apply(false)
	apply(true)
	apply(true)
	if opened != 2 {
		t.Errorf("the snapshot was read %d times, want 2", opened)
	}
	install, err := r.Prepare(bytes.NewReader(written(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	install()
	b = written(t, r)
	r.Checkpoint(index, int64(len(b)), open)
	apply(true)
	b = nil
	var batch fsm.Batch
	batch.Reset(9)
	data, _ := placeCodec.Append(nil, &place{"k", true})
	batch.Update(1<<20, (index+1)<<8, (index+1)<<8, data)
	if err := r.Apply(index+1, 1, batch.Bytes(), nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("if the snapshot cannot be read: %v", err)
	}
}

// frozenRack is a rack that can be frozen.
type frozenRack struct {
	rack
	freezes func(*frozenRack) *frozenRack
}

func (s *frozenRack) Freeze() *frozenRack { return s.freezes(s) }

// TestFreeze: a state that can be frozen is written as it was, while updates go on.
func TestFreeze(t *testing.T) {
	codec := rackCodec(new(int))
	r := fsm.NewReplicated(fsm.Definition[frozenRack, place, struct{}]{
		Update: fsm.NoResult(func(p *place, s *frozenRack) error { return p.Update(&s.rack) }),
		StateCodec: fsm.Codec[frozenRack]{
			Append:  func(b []byte, s *frozenRack) ([]byte, error) { return codec.Append(b, &s.rack) },
			Consume: func(b []byte, s *frozenRack) error { return codec.Consume(b, &s.rack) },
		},
		UpdateCodec: placeCodec,
	}, fsm.Options{})
	freezes := func(f func(*frozenRack) *frozenRack) { r.View(func(s *frozenRack) { s.freezes = f }) }
	r.View(func(s *frozenRack) { fill(&s.rack, "before", 1) })
	freezes(func(s *frozenRack) *frozenRack {
		return &frozenRack{rack: rack{s.Title, maps.Clone(s.Count), slices.Clone(s.Names), maps.Clone(s.byID), true}}
	})
	write, frozen, err := r.Snapshot()
	if err != nil || !frozen {
		t.Fatal(err, frozen)
	}
	r.View(func(s *frozenRack) { fill(&s.rack, "after", 2) })
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	install, err := r.Prepare(&b)
	if err != nil {
		t.Fatal(err)
	}
	install()
	r.View(func(s *frozenRack) {
		if len(s.Count) != 1 || s.Count["before"] != 1 {
			t.Errorf("the snapshot holds %v", s.Count)
		}
	})
	for what, f := range map[string]func(*frozenRack) *frozenRack{
		"returned nil": func(*frozenRack) *frozenRack { return nil },
		"panicked":     func(*frozenRack) *frozenRack { panic("no") },
	} {
		freezes(f)
		if _, _, err := r.Snapshot(); err == nil || !strings.Contains(err.Error(), "Freeze") {
			t.Errorf("Freeze has %s: %v", what, err)
		}
	}
}
