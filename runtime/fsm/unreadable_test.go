package fsm_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// unreadable is a value of a tape that picky encodes and does not decode.
const unreadable = 13

// picky is a codec of tapes that cannot decode each tape.
var picky = fsm.Codec[tape]{
	Append: tapeCodec.Append,
	Consume: func(b []byte, s *tape) error {
		if err := tapeCodec.Consume(b, s); err != nil || !slices.Contains(s.values, unreadable) {
			return err
		}
		return errFailed
	},
}

// TestACheckpointThatCannotBeDecoded: a checkpoint in memory that cannot be decoded does not replace
// the entries before it, so an update that panics is still undone.
func TestACheckpointThatCannotBeDecoded(t *testing.T) {
	for what, checkpoint := range map[string]func(*testing.T, *replicated){
		"after many entries": func(t *testing.T, r *replicated) {
			for range 10 {
				applyNotes(t, r, note{value: 2})
			}
		},
		"at a mark": func(t *testing.T, r *replicated) {
			var b fsm.Batch
			b.Mark()
			if err := r.Apply(r.Applied()+1, 1, b.Bytes(), nil); err != nil {
				t.Fatal(err)
			}
		},
		"by AppendSnapshot": func(t *testing.T, r *replicated) {
			if _, err := r.AppendSnapshot(nil); !errors.Is(err, fsm.ErrCodec) || !strings.Contains(err.Error(), "fsm_test.tape") {
				t.Errorf("AppendSnapshot: %v", err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := fsm.NewReplicated(with(picky, noteCodec), fsm.Options{ReplayMax: 3})
			applyNotes(t, r, note{value: unreadable})
			checkpoint(t, r)
			var want, got []int64
			r.View(func(s *tape) { want = slices.Clone(s.values) })
			errs, err := tryNotes(r, note{value: 1}, note{how: panics})
			if err != nil || !errors.Is(errs[1], fsm.ErrPanicked) {
				t.Fatal(errs, err)
			}
			r.View(func(s *tape) { got = s.values })
			if want = append(want, 1); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestVerify: a snapshot that cannot be decoded is reported, whether it is written at once or in
// chunks, and whether the state or a pending update is at fault.
func TestVerify(t *testing.T) {
	verify := func(d fsm.Definition[tape, note, answer], value int64) error {
		var r *replicated
		fsm.Unchecked(func() { r = fsm.NewReplicated(d, fsm.Options{}) }) // a check would decode the update again
		var b fsm.Batch
		b.Open("test", 0)
		u, _ := noteCodec.Append(nil, &note{value: value})
		b.Add(1<<20, 1, 1, u)
		if err := r.Apply(1, 1, b.Bytes(), nil); err != nil {
			t.Fatal(err)
		}
		write, _, err := r.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := write(&file); err != nil {
			t.Fatal(err)
		}
		return r.Verify(&file)
	}
	chunked := picky
	chunked.Parts = []string{"values"}
	fails := false // whether a note cannot be decoded
	update := fsm.Codec[note]{Append: noteCodec.Append, Consume: func(b []byte, n *note) error {
		if fails {
			return errFailed
		}
		return noteCodec.Consume(b, n)
	}}
	changed := with(tapeCodec, update) // its Update changes the note so that it cannot be decoded
	changed.Update = func(n *note, s *tape) (answer, error) { fails = n.value == unreadable; return n.Update(s) }
	for what, d := range map[string]fsm.Definition[tape, note, answer]{
		"whole": with(picky, noteCodec), "chunks": with(chunked, noteCodec), "update": changed,
	} {
		if err := verify(d, 1); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := verify(d, unreadable); !errors.Is(err, errFailed) || errors.Is(err, fsm.ErrCodec) == (what == "update") {
			t.Errorf("%s: %v", what, err)
		}
	}
	r := fsm.NewReplicated(noteDefinition, fsm.Options{})
	if err := r.Verify(io.MultiReader()); !errors.Is(err, fsm.ErrDamaged) {
		t.Errorf("an empty snapshot: %v", err)
	}
}
