package fsm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// holder is a state in which two fields can hold one account.
type holder struct {
	ByName, ByID *account
	Deposits     []*deposit
	Names        []string
	First        bool
}

type account struct{ Cents int }

type deposit struct {
	Kind  string
	Cents int
}

// Update changes the holder according to Kind.
func (d *deposit) Update(h *holder) error {
	switch d.Kind {
	case "open": // one account in two fields
		h.ByName = &account{}
		h.ByID = h.ByName
	case "open twice":
		h.ByName, h.ByID = &account{}, &account{}
	case "add":
		h.ByName.Cents += d.Cents
	case "keep pointer":
		h.Deposits = append(h.Deposits, d)
	case "keep copy":
		kept := *d
		h.Deposits = append(h.Deposits, &kept)
	case "empty": // a list that is not nil
		h.Names = []string{}
	case "ask for nil":
		h.First = h.Names == nil
	}
	return nil
}

func jsonCodec[T any]() fsm.Codec[T] {
	return fsm.Codec[T]{
		Append:  func(b []byte, v *T) ([]byte, error) { e, err := json.Marshal(v); return append(b, e...), err },
		Consume: func(b []byte, v *T) error { return json.Unmarshal(b, v) },
	}
}

// TestTwins: in tests, an update that would have another result after a restart from a snapshot
// stops the replica, even if no snapshot was made yet. Outside of tests nothing is checked.
func TestTwins(t *testing.T) {
	state := jsonCodec[holder]()
	marshal := state.Append
	state.Append = func(b []byte, h *holder) ([]byte, error) { // like the wire codec, it does not keep empty lists
		c := *h
		if len(c.Names) == 0 {
			c.Names = nil
		}
		return marshal(b, &c)
	}
	d := fsm.Definition[holder, deposit, struct{}]{
		Update: fsm.NoResult((*deposit).Update), StateCodec: state, UpdateCodec: jsonCodec[deposit](),
	}
	apply := func(r *fsm.Replicated[holder, deposit, struct{}], kinds []string) error {
		var b fsm.Batch
		b.Open("test", 0)
		for i, kind := range kinds {
			update, _ := json.Marshal(deposit{kind, i + 1})
			b.Update(1<<20, uint64(i)+1, 1, update)
		}
		return r.Apply(1, 1, b.Bytes(), nil)
	}
	for _, kinds := range []string{"open,add", "keep pointer,keep pointer", "empty,ask for nil"} {
		kinds := strings.Split(kinds, ",")
		err := apply(fsm.NewReplicated(d, fsm.Options{}), kinds)
		if !errors.Is(err, fsm.ErrDiverged) || !strings.Contains(err.Error(), "command 2: the update fsm_test.deposit makes another state of a fsm_test.holder") {
			t.Errorf("%q: %v", kinds, err)
		}
		fsm.Unchecked(func() { err = apply(fsm.NewReplicated(d, fsm.Options{}), kinds) })
		if err != nil {
			t.Errorf("%q, not checked: %v", kinds, err)
		}
	}
	right := []string{"open twice", "add", "keep copy", "keep copy", "ask for nil", "add"}
	if err := apply(fsm.NewReplicated(d, fsm.Options{}), right); err != nil {
		t.Error(err)
	}
}

// TestTwinsAreBounded: with a large state, not every update is checked.
func TestTwinsAreBounded(t *testing.T) {
	read := 0
	codec := fsm.Codec[tape]{
		Append:  func(b []byte, _ *tape) ([]byte, error) { return append(b, make([]byte, 1<<20)...), nil },
		Consume: func([]byte, *tape) error { read++; return nil },
	}
	r := fsm.NewReplicated(with(codec, noteCodec), fsm.Options{})
	notes := make([]note, 4000)
	for i := range notes {
		notes[i] = note{value: 1}
	}
	applyNotes(t, r, notes...)
	if read < 4 || read > 12 {
		t.Errorf("the state was read %d times", read)
	}
}
