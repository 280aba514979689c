package fsm_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/fsm"
)

// tape is a state that shows which updates were applied to it, and in which order.
type tape struct {
	values  []int64
	trouble *trouble `topo:"-"` // of a state machine in memory, whose failures may be temporary
}

// trouble makes some updates and reverts fail that would otherwise succeed.
type trouble struct{ left int }

// note is an update that puts a value on the tape.
type note struct {
	value int64
	how   how
	at    fsm.Entry // set by stamped.UpdateAt; the snapshot contains what Update stores in the update
}

// how an update ends.
type how byte

const (
	well how = iota
	rejects
	rejectsWrapped
	fails        // after half of its change, which is forbidden
	panics       // after half of its change
	failsRevert  // succeeds, but undoing it fails after half of the change
	panicsRevert // succeeds, but undoing it panics after half of the change
	rejectsRevert
	tooMuch    // succeeds, but its result is too large to be remembered
	unwritable // succeeds, but its result cannot be encoded
	hows
)

// answer is the result of an update: the number of values on the tape before it.
type answer string

var (
	errRejected = errors.New("rejected")
	errFailed   = errors.New("failed")
)

// spoiled is the value that an update leaves if it fails after half of its change.
const spoiled = -1

func (n *note) Update(t *tape) (answer, error) {
	if t.trouble != nil && t.trouble.left > 0 {
		t.trouble.left--
		return "", fails.end(n)
	}
	switch n.how {
	case rejects, rejectsWrapped:
		return "not to be seen", n.how.end(n)
	case fails, panics:
		t.values = append(t.values, spoiled)
		return "", n.how.end(n)
	}
	a := answer(strconv.Itoa(len(t.values)))
	switch t.values = append(t.values, n.value); n.how {
	case tooMuch:
		return answer(strings.Repeat("x", 64<<10+1)), nil
	case unwritable:
		return cannotBeWritten, nil
	}
	return a, nil
}

const cannotBeWritten answer = "cannot be written"

func (n *note) Revert(t *tape) error {
	last := len(t.values) - 1
	switch {
	case t.trouble != nil && t.trouble.left > 0:
		t.trouble.left--
		return panics.end(n)
	case last < 0 || t.values[last] != n.value:
		return fmt.Errorf("%d is undone, and the tape ends with %v", n.value, t.values)
	case n.how == rejectsRevert:
		return rejects.end(n)
	case n.how == failsRevert || n.how == panicsRevert:
		t.values[last] = spoiled
		return (n.how - failsRevert + fails).end(n)
	}
	t.values = slices.Delete(t.values, last, last+1)
	return nil
}

func (h how) end(n *note) error {
	err := fmt.Errorf("%w: %d", errFailed, n.value)
	switch h {
	case rejects:
		return errRejected
	case rejectsWrapped:
		return fmt.Errorf("wrapped: %w", errRejected)
	case panics:
		panic(err)
	}
	return err
}

var tapeCodec = fsm.Codec[tape]{
	Append: func(b []byte, t *tape) ([]byte, error) {
		for _, v := range t.values {
			b = binary.AppendVarint(b, v)
		}
		return b, nil
	},
	Consume: func(b []byte, t *tape) error {
		for len(b) > 0 {
			v, n := binary.Varint(b)
			if n <= 0 {
				return errors.New("a damaged number")
			}
			t.values, b = append(t.values, v), b[n:]
		}
		return nil
	},
}

var noteCodec = fsm.Codec[note]{
	Append: func(b []byte, n *note) ([]byte, error) {
		b = binary.AppendVarint(append(b, byte(n.how)), n.value)
		b = binary.AppendUvarint(b, n.at.Index)
		b = binary.AppendVarint(b, int64(n.at.Position))
		return binary.AppendVarint(b, n.at.Time), nil
	},
	Consume: func(b []byte, n *note) error {
		if len(b) == 0 || b[0] >= byte(hows) || *n != (note{}) {
			return errors.New("a damaged note")
		}
		n.how, b = how(b[0]), b[1:]
		var numbers [4]int64
		for i := range numbers {
			var size int
			if i == 1 {
				var v uint64
				v, size = binary.Uvarint(b)
				numbers[i] = int64(v)
			} else {
				numbers[i], size = binary.Varint(b)
			}
			if size <= 0 {
				return errors.New("a damaged number")
			}
			b = b[size:]
		}
		n.value = numbers[0]
		n.at = fsm.Entry{Index: uint64(numbers[1]), Position: int(numbers[2]), Time: numbers[3]}
		if len(b) > 0 {
			return errors.New("too long")
		}
		return nil
	},
}

var answerCodec = fsm.Codec[answer]{
	Append: func(b []byte, a *answer) ([]byte, error) {
		if *a == cannotBeWritten {
			return nil, errFailed
		}
		return append(b, *a...), nil
	},
	Consume: func(b []byte, a *answer) error { *a = answer(b); return nil },
}

var noteDefinition = fsm.Definition[tape, note, answer]{
	Update: (*note).Update, Revert: (*note).Revert,
	StateCodec: tapeCodec, UpdateCodec: noteCodec, ResultCodec: answerCodec,
	Errors: []fsm.Sentinel{{Name: "errRejected", Err: errRejected}},
}

// with returns the definition of notes with other codecs.
func with(state fsm.Codec[tape], update fsm.Codec[note]) fsm.Definition[tape, note, answer] {
	d := noteDefinition
	d.StateCodec, d.UpdateCodec = state, update
	return d
}
