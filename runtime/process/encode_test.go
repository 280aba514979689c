package process

import (
	"errors"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/wire"
)

// appends returns a codec that appends n bytes and returns an error.
func appends(n int, err error) func([]byte, int) ([]byte, error) {
	return func(b []byte, _ int) ([]byte, error) { return append(b, make([]byte, n)...), err }
}

func TestEncode(t *testing.T) {
	const limit = 1000
	broken := errors.New("broken")
	deep := error(wire.ErrDeep)
	for range wire.DepthMax {
		deep = wire.Failed("Node", "Next", deep)
	}
	for name, c := range map[string]struct {
		codec func([]byte, int) ([]byte, error)
		is    error
		text  string
	}{
		"too large": {appends(limit-messageOverhead+1, nil), ErrTooLarge, "got 1001;"},
		"endless": {func(b []byte, limit int) ([]byte, error) {
			return append(b, make([]byte, limit+1)...), wire.Failed("Node", "Kids", wire.ErrLarge)
		}, ErrTooLarge, "larger than the message limit of 1000 bytes; send less"},
		"deep":   {appends(5, deep), wire.ErrDeep, "…: it is nested more than 1000 deep; it must not contain itself"},
		"fails":  {appends(5, wire.Failed("Node", "Odd", broken)), broken, "wire: Node.Odd: broken"},
		"panics": {func([]byte, int) ([]byte, error) { panic(broken) }, broken, "broken"},
	} {
		b, err := Encode("a -> b: Node", nil, limit, c.codec)
		if b != nil || !errors.Is(err, ErrEncode) || !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), "a -> b: Node cannot be encoded: ") ||
			!strings.Contains(err.Error(), c.text) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
		if err := Check(limit, c.codec); !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), "the message cannot be encoded: ") {
			t.Errorf("%s: Check: %v", name, err)
		}
		if !new(Remote).Refuses(err) {
			t.Errorf("%s: Ends reports that the process has ended", name)
		}
	}
	if b, err := Encode("", []byte("before"), limit, appends(limit-messageOverhead, nil)); len(b) != limit-messageOverhead || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if new(Remote).Refuses(broken) || new(Remote).Refuses(&RemoteError{Text: "no"}) {
		t.Error("Refuses reports an error of a handler as a fault of its message")
	}
}

// TestLargeBuffersAreNotKept: after a large message its memory is released.
func TestLargeBuffersAreNotKept(t *testing.T) {
	large := make([]byte, 0, keepMax+1)
	if b, err := Encode("", large, MessageLimitDefault, appends(1, nil)); cap(b) > keepMax || err != nil {
		t.Errorf("a buffer of %d bytes is kept, %v", cap(b), err)
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	message := make([]byte, 100)
	if race.Enabled {
		t.Skip("with the race detector a sync.Pool drops items at random")
	}
	check := func() {
		if err := Check(MessageLimitMin, func(b []byte, _ int) ([]byte, error) { return append(b, message...), nil }); err != nil {
			t.Fatal(err)
		}
	}
	check()
	if n := testing.AllocsPerRun(1000, check); n >= 1 { // the collector may empty the pool during the test
		t.Errorf("%v allocations", n)
	}
}
