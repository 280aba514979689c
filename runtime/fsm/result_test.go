package fsm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

// counter is a state that an update adds to. The update returns the sum, or an error.
type (
	counter int64
	plus    byte
)

var (
	errOdd   = errors.New("odd")
	errLarge = errors.New("large")
	errGone  = errors.New("gone")
)

// The updates that fail.
const (
	odd        plus = 100 + iota
	oddWrapped      // wrapped
	oddLarge        // an error that joins two errors
	unknown         // an error without a name
	longText
	hidesIt // an error whose method Is panics
)

func (p *plus) Update(c *counter) (int64, error) {
	switch *p {
	case odd:
		return 0, errOdd
	case oddWrapped:
		return 0, fmt.Errorf("%d is %w", *p, errOdd)
	case oddLarge:
		return 0, errors.Join(errOdd, errLarge)
	case unknown:
		return 0, io.ErrUnexpectedEOF
	case longText:
		return 0, fmt.Errorf("%w %s", errOdd, strings.Repeat("x", 1000))
	case hidesIt:
		return 0, hiding{}
	}
	*c += counter(*p)
	return int64(*c), nil
}

type hiding struct{}

func (hiding) Error() string { return "hiding" }
func (hiding) Is(target error) bool {
	if target == errOdd {
		panic("no text")
	}
	return false
}

func counterDefinition(sentinels ...fsm.Sentinel) fsm.Definition[counter, plus, int64] {
	return fsm.Definition[counter, plus, int64]{
		Update: (*plus).Update,
		StateCodec: fsm.Codec[counter]{
			Append:  func(b []byte, c *counter) ([]byte, error) { return binary.AppendVarint(b, int64(*c)), nil },
			Consume: func(b []byte, c *counter) error { v, _ := binary.Varint(b); *c = counter(v); return nil },
		},
		UpdateCodec: fsm.Codec[plus]{
			Append:  func(b []byte, p *plus) ([]byte, error) { return append(b, byte(*p)), nil },
			Consume: func(b []byte, p *plus) error { *p = plus(b[0]); return nil },
		},
		ResultCodec: int64Codec,
		Errors:      sentinels,
	}
}

// counting applies updates of one session, whose number is 1<<20.
type counting struct {
	t *testing.T
	r *fsm.Replicated[counter, plus, int64]
}

func newCounting(t *testing.T, d fsm.Definition[counter, plus, int64]) *counting {
	c := &counting{t, fsm.NewReplicated(d, fsm.Options{})}
	var b fsm.Batch
	b.Open("test", 1)
	if err := c.r.Apply(1, 1, b.Bytes(), nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// apply applies a command of the session, also repeatedly.
func (c *counting) apply(sequence uint64, p plus) (a fsm.Applied) {
	c.t.Helper()
	var b fsm.Batch
	b.Update(1<<20, sequence, 1, []byte{byte(p)})
	if err := c.r.Apply(c.r.Applied()+1, 1, b.Bytes(), func(_, _ uint64, applied fsm.Applied) { a = applied }); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// restart continues with another replica, restored from a snapshot.
func (c *counting) restart(d fsm.Definition[counter, plus, int64]) {
	c.t.Helper()
	b, err := c.r.AppendSnapshot(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.r = fsm.NewReplicated(d, fsm.Options{})
	if err := c.r.Restore(b); err != nil {
		c.t.Fatal(err)
	}
	if again, err := c.r.AppendSnapshot(nil); err != nil || !bytes.Equal(b, again) {
		c.t.Errorf("the snapshot is\n%q\nand was\n%q", again, b)
	}
}

// TestResultsAreRemembered: a repeated request gets the value of the first one, also
// after a snapshot, and changes nothing.
func TestResultsAreRemembered(t *testing.T) {
	c := newCounting(t, counterDefinition())
	var first []fsm.Applied
	for i := range uint64(300) {
		first = append(first, c.apply(i+1, 99))
	}
	for range 2 {
		for i, want := range first {
			if got := c.apply(uint64(i)+1, 99); got != want {
				t.Fatalf("repeated answer %+v, first answer %+v", got, want)
			}
			if v, _ := binary.Varint([]byte(want.Data)); v != int64(i+1)*99 {
				t.Fatalf("update %d returned %d", i, v)
			}
		}
		c.restart(counterDefinition())
	}
	c.r.View(func(s *counter) {
		if *s != 300*99 {
			t.Errorf("the sum is %d", *s)
		}
	})
}

// TestErrorsKeepTheirIdentity: an error of the definition keeps its identity in the
// first answer, in a repeated one, and after a snapshot.
func TestErrorsKeepTheirIdentity(t *testing.T) {
	known := []fsm.Sentinel{{Name: "errOdd", Err: errOdd}, {Name: "errLarge", Err: errLarge}, {Name: "later", Err: nil}}
	c := newCounting(t, counterDefinition(known...))
	cases := []struct {
		update plus
		is     []error
	}{
		{odd, []error{errOdd}},
		{oddWrapped, []error{errOdd}},
		{oddLarge, []error{errOdd, errLarge}},
		{unknown, nil},
		{longText, []error{errOdd}},
		{hidesIt, nil},
	}
	check := func(when string) {
		t.Helper()
		for i, want := range cases {
			err := c.apply(uint64(i)+1, want.update).Err
			for _, e := range []error{errOdd, errLarge, errGone} {
				is := want.update != hidesIt && errors.Is(err, e)
				if wanted := fmt.Sprint(want.is); is != strings.Contains(wanted, e.Error()) {
					t.Errorf("%s: errors.Is(%v, %v) is %t", when, err, e, is)
				}
			}
			if err == nil || !fsm.OutcomeKnown(err) || when != "first" && len(err.Error()) > 256 {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	check("first")
	check("again")
	c.restart(counterDefinition(known...))
	check("behind a snapshot")

	// A version without the error keeps its name for a later version that has it.
	c.restart(counterDefinition())
	if err := c.apply(1, odd).Err; errors.Is(err, errOdd) || err.Error() != "odd" {
		t.Errorf("without the error: %v", err)
	}
	c.restart(counterDefinition(known...))
	check("with it again")
}

// TestDefinitionsAreChecked: invalid definitions are refused.
func TestDefinitionsAreChecked(t *testing.T) {
	sentinel := func(name string, err error) fsm.Definition[counter, plus, int64] {
		return counterDefinition(fsm.Sentinel{Name: name, Err: err})
	}
	without := counterDefinition()
	without.Update = nil
	unread := counterDefinition()
	unread.ResultCodec.Consume = nil
	stateless := counterDefinition()
	stateless.StateCodec.Append = nil
	for want, d := range map[string]fsm.Definition[counter, plus, int64]{
		"must have Update or UpdateAt":                       without,
		"must have a codec for the result":                   unread,
		"must have a codec for the state":                    stateless,
		"must have 1 to 128 bytes, got 0":                    sentinel("", errOdd),
		"must have 1 to 128 bytes, got 129":                  sentinel(strings.Repeat("x", 129), errOdd),
		"must not match an error of package fsm that leaves": sentinel("x", fmt.Errorf("%w: x", fsm.ErrUnknown)),
		"must be comparable, got a fsm_test.list":            sentinel("x", list{}),
		`two errors of the definition have the name "x"`:     counterDefinition(fsm.Sentinel{Name: "x", Err: errOdd}, fsm.Sentinel{Name: "x", Err: errGone}),
		"must have at most 1000 errors, got 1001":            counterDefinition(make([]fsm.Sentinel, 1001)...),
	} {
		if err := d.CheckLogged(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, want) {
					t.Errorf("a panic with %q, want %s", text, want)
				}
			}()
			fsm.NewReplicated(d, fsm.Options{})
		}()
	}
	if err := new(fsm.Processor[counter, plus, int64]).Start(t.Context(), newHost()); err == nil {
		t.Error("a zero Processor has started")
	}
}

type list []int

func (list) Error() string { return "a list" }

// TestUpdatesWithResultsAllocateLittle: the results of several updates share an
// allocation.
func TestUpdatesWithResultsAllocateLittle(t *testing.T) {
	c := newCounting(t, counterDefinition())
	fsm.Unchecked(func() { c = newCounting(t, counterDefinition()) })
	var b fsm.Batch
	sequence := uint64(0)
	apply := func() {
		b.Reset(0)
		for range 1000 {
			sequence++
			b.Update(1<<20, sequence, max(sequence, 100)-99, []byte{1})
		}
		if err := c.r.Apply(c.r.Applied()+1, 1, b.Bytes(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		apply()
	}
	if allocs := testing.AllocsPerRun(100, apply); allocs > 20 { // 1000 results of 3 bytes, 64 at a time
		t.Errorf("%v allocations for 1000 updates", allocs)
	}
}
