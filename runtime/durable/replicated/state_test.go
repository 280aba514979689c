package replicated

import (
	"bytes"
	"testing"

	"github.com/topogen/topogen/runtime/durable/store"
)

func TestCodecs(t *testing.T) {
	var s state
	for _, e := range []entry{
		{begin: "https://n1"},
		{epoch: 1, writes: []write{{1, []byte("a"), []byte("x")}, {1, []byte("b"), []byte{}}, {2, []byte("a"), []byte("y")}}},
		{epoch: 1, writes: []write{{1, []byte("a"), nil}}},
	} {
		b, err := appendEntry(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		var read entry
		if err := consumeEntry(b, &read); err != nil {
			t.Fatal(err)
		}
		if _, err := read.apply(&s); err != nil {
			t.Fatal(err)
		}
	}
	late := entry{epoch: 7, writes: []write{{1, []byte("z"), []byte("z")}}}
	if _, err := late.apply(&s); err != errReplaced {
		t.Errorf("an entry of another epoch: %v", err)
	}
	b, err := appendState(nil, &s)
	if err != nil {
		t.Fatal(err)
	}
	var read state
	if err := consumeState(b, &read); err != nil {
		t.Fatal(err)
	}
	again, _ := appendState(nil, &read)
	if !bytes.Equal(b, again) || read.epoch != 1 || read.url != "https://n1" {
		t.Errorf("read %+v", read)
	}
	_ = read.memory.View(func(tx store.Tx) error {
		n := 0
		for range store.Records(tx) {
			n++
		}
		if n != 2 || tx.Get(1, []byte("b")) == nil || string(tx.Get(2, []byte("a"))) != "y" {
			t.Errorf("%d records", n)
		}
		return nil
	})
}

func FuzzEntry(f *testing.F) {
	b, _ := appendEntry(nil, &entry{epoch: 1, writes: []write{{1, []byte("a"), []byte("x")}, {1, []byte("b"), nil}}})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e entry
		if consumeEntry(b, &e) == nil {
			again, _ := appendEntry(nil, &e)
			var second entry
			if err := consumeEntry(again, &second); err != nil {
				t.Error(err)
			}
		}
		var s state
		_ = consumeState(b, &s)
	})
}
