package fsm_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// hollow is an error whose methods panic, like those of many nil pointers.
type hollow struct{ cause error }

func (h *hollow) Error() string { return h.cause.Error() }
func (h *hollow) Unwrap() error { return h.cause }

type hollowState struct{ n int }

// hollowUpdate changes the state and then fails with a nil pointer as the error.
type hollowUpdate struct{ panics bool }

func (u *hollowUpdate) Update(s *hollowState) error {
	s.n++
	var err *hollow
	if u.panics {
		panic(err)
	}
	return err
}

var hollowCodec = fsm.Codec[hollowState]{
	Append:  func(b []byte, s *hollowState) ([]byte, error) { return append(b, byte(s.n)), nil },
	Consume: func(b []byte, s *hollowState) error { s.n = int(b[0]); return nil },
}

// TestErrorsThatPanic: an error whose methods panic fails its proposal, not the node.
// Otherwise every replica would stop at the same entry, at each start again.
func TestErrorsThatPanic(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprint(panics), func(t *testing.T) {
			r := fsm.NewReplicated(fsm.Definition[hollowState, hollowUpdate, struct{}]{
				Update: fsm.NoResult((*hollowUpdate).Update), StateCodec: hollowCodec,
				UpdateCodec: fsm.Codec[hollowUpdate]{
					Append:  func(b []byte, u *hollowUpdate) ([]byte, error) { return b, nil },
					Consume: func(_ []byte, u *hollowUpdate) error { u.panics = panics; return nil },
				},
			}, fsm.Options{})
			var b fsm.Batch
			b.Open("test", 1)
			if err := r.Apply(1, 1, b.Bytes(), nil); err != nil {
				t.Fatal(err)
			}
			b.Reset(0)
			b.Update(1<<20, 1, 1, nil)
			var got fsm.Applied
			if err := r.Apply(2, 1, b.Bytes(), func(_, _ uint64, a fsm.Applied) { got = a }); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(got.Err, fsm.ErrPanicked) || errors.Is(got.Err, fsm.ErrUnknown) || got.Err.Error() == "" {
				t.Errorf("the error is %v", got.Err)
			}
			r.View(func(s *hollowState) {
				if s.n != 0 {
					t.Errorf("the state is %d", s.n)
				}
			})
		})
	}
}

// pretender is an update that fails with an error of this package. A client could take
// it for an error of its session.
type pretender struct{}

func (*pretender) Update(*hollowState) error { return fsm.ErrSessionExpired }

// TestErrorsThatPretend: such an error is treated as an error of the update.
func TestErrorsThatPretend(t *testing.T) {
	r := fsm.NewReplicated(fsm.Definition[hollowState, pretender, struct{}]{
		Update: fsm.NoResult((*pretender).Update), StateCodec: hollowCodec,
		UpdateCodec: fsm.Codec[pretender]{
			Append:  func(b []byte, _ *pretender) ([]byte, error) { return b, nil },
			Consume: func([]byte, *pretender) error { return nil },
		},
	}, fsm.Options{})
	var b fsm.Batch
	b.Open("test", 1)
	b.Update(1<<20, 1, 1, nil)
	var got fsm.Applied
	if err := r.Apply(1, 1, b.Bytes(), func(_, _ uint64, a fsm.Applied) { got = a }); err != nil {
		t.Fatal(err)
	}
	if got.Err == nil || !fsm.OutcomeKnown(got.Err) || got.Err.Error() != fsm.ErrSessionExpired.Error() {
		t.Errorf("the error is %v", got.Err)
	}
}
