package replicated

import (
	"bytes"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
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
	f.Add([]byte("\x010\x010"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e entry
		var s state
		var err error
		allocated.Within(t, 8<<10+200*len(b), func() { // 8 KiB for the tables of an empty state
			err = consumeEntry(b, &e)
			_ = consumeState(b, &s)
		})
		if err == nil {
			again, _ := appendEntry(nil, &e)
			var second entry
			if err := consumeEntry(again, &second); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPartsOfTransactions: the records of a transaction change with its last entry, also if
// a snapshot comes before, and never if another epoch begins before.
func TestPartsOfTransactions(t *testing.T) {
	large := make([]byte, entryBytes)
	writes := []write{{1, []byte("a"), large}, {1, []byte("b"), large}, {1, []byte("c"), []byte("x")}}
	list := split(1, writes)
	if len(list) != 3 || !list[0].more || !list[1].more || list[2].more || len(split(1, nil)) != 1 || len(split(1, writes[:1])) != 1 {
		t.Fatalf("%d entries", len(list))
	}
	records := func(s *state) (n int) {
		_ = s.snapshot().View(func(tx store.Tx) error {
			for range store.Records(tx) {
				n++
			}
			return nil
		})
		return n
	}
	for _, replaced := range []bool{false, true} {
		s := new(state)
		apply := func(e entry) error {
			t.Helper()
			b, err := appendEntry(nil, &e)
			var read entry
			if err != nil || consumeEntry(b, &read) != nil {
				t.Fatal(err)
			}
			_, err = read.apply(s)
			frozen, err2 := appendState(nil, s.Freeze())
			next := new(state)
			if err2 != nil || consumeState(frozen, next) != nil {
				t.Fatal(err2)
			}
			s = next
			return err
		}
		_ = apply(entry{begin: "n1"})
		_, _ = apply(list[0]), apply(list[1])
		if n := records(s); n != 0 || len(s.part) != 2 {
			t.Errorf("%d records before the last entry, and %d in parts", n, len(s.part))
		}
		want := 3
		if replaced {
			want = 0
			_ = apply(entry{begin: "n2"})
		}
		if err := apply(list[2]); (err != nil) != replaced {
			t.Error(err)
		}
		if n := records(s); n != want || len(s.part) != 0 {
			t.Errorf("replaced %v: %d records, and %d in parts", replaced, n, len(s.part))
		}
	}
}
