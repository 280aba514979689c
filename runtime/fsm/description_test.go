package fsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/fsm"
)

// bankTypes is a description that the tests modify.
const bankTypes = `state .Accounts
update .Transfer
result .Int64
message Accounts
1 Cents map string int64
2 Last optional .Transfer
3 Many list .Transfer
message Transfer
1 To string
2 Cents int32
message Int64
1 value int64
limit Window 4096
`

// TestCompatible compares two descriptions in both directions.
func TestCompatible(t *testing.T) {
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(bankTypes) }
	for _, c := range []struct {
		name, now string
		up, down  string // the error for now after then, and for then after now; "": none
	}{
		{"the same", bankTypes, "", ""},
		{"nothing", "", "", ""},
		{"limits alone", "limit Window 4096\n", "", ""},
		{"an added field", change("2 Cents int32\n", "2 Cents int32\n3 Note string\n"), "", "field 3 of Transfer, Note, was string, and it no longer exists: keep the field, because the log may contain it; if it was renamed, rename it in topology.wire.yml too"},
		{"another name", change("1 To string", "1 Payee string"), "", ""},
		{"another name of a type", change("Transfer", "Order"), "", ""},
		{"wider", change("2 Cents int32", "2 Cents int64"), "", "field 2 of Transfer, Cents, was int64, and is int32 now"},
		{"another kind", change("1 To string", "1 To bytes"), "field 1 of Transfer, To, was string, and is bytes now: keep this field, and add another one for the new type", "was bytes, and is string now"},
		{"another number", change("1 To string", "4 To string"), "To of Transfer was field 1, and is field 4 now", "To of Transfer was field 4, and is field 1 now"},
		{"another value of a map", change("map string int64", "map string string"), "was map[string]int64, and is map[string]string now", "was map[string]string, and is map[string]int64 now"},
		{"a list", change("2 Last optional .Transfer", "2 Last list .Transfer"), "was optional Transfer, and is list Transfer now", "was list Transfer, and is optional Transfer now"},
		{"a field instead of a message", change("3 Many list .Transfer", "3 Many list string"), "was list Transfer, and is list string now", "was list string, and is list Transfer now"},
		{"another message in the same place", change("3 Many list .Transfer\n", "3 Many list .Int64\n"), "field 1 of Transfer, To, was string, and is int64 now", "field 1 of Int64, value, was int64, and is string now"},
		{"no result", change("result .Int64\n", ""), "the result was Int64, and it no longer exists", ""},
		{"another result", change("result .Int64\n", "result .Transfer\n"), "field 1 of Int64, value, was int64, and is string now", "field 1 of Transfer, To, was string, and is int64 now"},
		{"another limit", change("4096", "4097"), "the log was written with Options.Window 4096, and here it is 4097", "the log was written with Options.Window 4097, and here it is 4096"},
	} {
		for _, way := range []struct{ then, now, want string }{{bankTypes, c.now, c.up}, {c.now, bankTypes, c.down}} {
			err := fsm.Compatible(way.then, way.now)
			if way.want == "" && err != nil || way.want != "" && (!errors.Is(err, fsm.ErrIncompatible) || !strings.Contains(err.Error(), way.want)) {
				t.Errorf("%s: %v, want %q", c.name, err, way.want)
			}
		}
	}
}

// TestRenumberedFields: a program in which the name of a field has another number misreads the
// log, even if the types of the fields are equal. A rename to a new name is allowed.
func TestRenumberedFields(t *testing.T) {
	transfer := func(fields ...string) string {
		text := "update .Transfer\nmessage Transfer\n"
		for i, name := range fields {
			text += fmt.Sprintf("%d %s string\n", i+1, name)
		}
		return text
	}
	then := transfer("From", "To")
	for _, c := range []struct {
		name, now, want string
	}{
		{"exchanged", transfer("To", "From"), "From of Transfer was field 1, and is field 2 now, so the log would be misread: restore the topology.wire.yml of the program that wrote the log"},
		{"a new field before another one", transfer("From", "Via", "To"), "To of Transfer was field 2, and is field 3 now"},
		{"the name of a renamed field", transfer("From", "Payee", "To"), "If field 3 got its number on purpose, give it a name that no other field of Transfer had"},
		{"rotated", transfer("To", "Via", "From"), "From of Transfer was field 1, and is field 3 now"},
		{"renamed", transfer("From", "Payee"), ""},
		{"both renamed", transfer("Payer", "Payee"), ""},
		{"renamed, and a new field", transfer("From", "Payee", "Note"), ""},
	} {
		err := fsm.Compatible(then, c.now)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, fsm.ErrIncompatible) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestDescriptionsInRings: comparing recursive types terminates.
func TestDescriptionsInRings(t *testing.T) {
	ring := "state .Node\nmessage Node\n1 Next optional .Node\n2 Value int64\n"
	if err := fsm.Compatible(ring, ring+"3 More string\n"); err != nil {
		t.Error(err)
	}
	if err := fsm.Compatible(ring, strings.Replace(ring, "int64", "string", 1)); !errors.Is(err, fsm.ErrIncompatible) {
		t.Error(err)
	}
}

// TestDamagedDescriptions: invalid descriptions are refused.
func TestDamagedDescriptions(t *testing.T) {
	for _, text := range []string{"x", "1 To string\n", "message A\n1\n", "message A\nx To string\n", strings.Repeat("state .A\n", 1<<17)} {
		if err := fsm.Compatible(bankTypes, text); !errors.Is(err, fsm.ErrDamaged) {
			t.Errorf("%.20q: %v", text, err)
		}
		if err := fsm.Compatible(text, bankTypes); !errors.Is(err, fsm.ErrDamaged) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// described returns a replica of a program whose types have a description.
func described(text string, o fsm.Options) *replicated {
	d := noteDefinition
	d.Description = text
	return fsm.NewReplicated(d, o)
}

// announce applies the entry that a node writes when it starts.
func announce(r *replicated, by *replicated) error {
	var b fsm.Batch
	b.Describe(1, by.Description(), 7)
	b.OpenNode(1, r.Applied()+1)
	if fsm.Described(b.Bytes()) != by.Description() {
		panic("the entry has no description")
	}
	var refused error
	err := r.Apply(r.Applied()+1, 1, b.Bytes(), func(client, _ uint64, a fsm.Applied) {
		if client == 7 {
			refused = a.Err
		}
	})
	if err == nil && refused != nil {
		err = fmt.Errorf("refused: %w", refused)
	}
	return err
}

// TestTypesAreRecorded: a log has the description of the newest program. A program that
// lacks a part of it, or declares a part differently, does not open the log.
func TestTypesAreRecorded(t *testing.T) {
	const one = "state .A\nmessage A\n1 X int64\n"
	const two = one + "2 Y string\n"
	const other = "state .A\nmessage A\n1 X string\n"
	program := func(text string) *replicated { return described(text, fsm.Options{}) }
	r := program(two)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what, text string) {
		t.Helper()
		if !strings.HasPrefix(r.Recorded(), text) || strings.Contains(text, "2 Y") != strings.Contains(r.Recorded(), "2 Y") {
			t.Errorf("%s: the log has %q", what, r.Recorded())
		}
	}
	if r.Recorded() != "" {
		t.Errorf("an empty log has %q", r.Recorded())
	}
	must(announce(r, program(one)))
	want("at the beginning", one)
	refused := func(err error, says string) {
		t.Helper()
		if !errors.Is(err, fsm.ErrIncompatible) || !strings.HasPrefix(err.Error(), "refused: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error with %s", err, says)
		}
	}
	refused(announce(r, program(other)), "field 1 of A, X, was int64, and is string now")
	want("after another program", one)
	must(announce(r, program(two)))
	want("after a newer program", two)
	refused(announce(r, program(one)), "field 2 of A, Y, was string")
	want("after an older program", two)
	snapshot, err := r.AppendSnapshot(nil)
	must(err)

	must(program(two).Restore(snapshot))
	for text, says := range map[string]string{one: "field 2 of A, Y, was string", other: "field 1 of A, X, was int64, and is string now"} {
		p := program(text)
		if err := p.Restore(snapshot); !errors.Is(err, fsm.ErrIncompatible) || !strings.Contains(err.Error(), says) {
			t.Errorf("a snapshot, opened with %q: %v", text, err)
		}
		if p.Applied() != 0 || p.Recorded() != "" {
			t.Error("the refused snapshot has changed the replica")
		}
	}
	if err := described(two, fsm.Options{SessionTTL: time.Minute}).Restore(snapshot); err == nil {
		t.Error("a snapshot with another limit was accepted")
	}

	// The same with entries: a program that the log contradicts stops, and also a
	// program that lacks a field of the log.
	for text, at := range map[string]int{other: 1, one: 2} {
		p := program(text)
		var err error
		stopped := 0
		for _, by := range []string{one, two, text} {
			if err == nil {
				stopped++
				err = announce(p, program(by))
			}
		}
		if !errors.Is(err, fsm.ErrIncompatible) || stopped != at {
			t.Errorf("a program with %q stopped at entry %d: %v", text, stopped, err)
		}
	}
	if err := announce(described(one, fsm.Options{SessionTTL: time.Minute}), program(one)); err == nil || !strings.Contains(err.Error(), "Options.SessionTTL 3600000000000, and here it is 60000000000") {
		t.Errorf("a node with another limit: %v", err)
	}
}

// TestDescribedEntries: Described finds the description in an entry, and nothing in
// others.
func TestDescribedEntries(t *testing.T) {
	var b fsm.Batch
	b.Describe(1, "", 1)
	if b.Len() != 0 {
		t.Error("an empty description was written")
	}
	b.OpenNode(1, 1)
	old := fsm.Batch{Version: 2}
	old.Reset(0)
	old.Describe(1, "state .A\n", 1)
	old.OpenNode(1, 1)
	for _, data := range [][]byte{nil, {3}, {9, 9}, {3, 0, 8, 1, 200}, b.Bytes(), old.Bytes()} {
		if d := fsm.Described(data); d != "" {
			t.Errorf("%q has %q", data, d)
		}
	}
	if err := newTape().Apply(1, 1, []byte{2, 0, 8, 1, 0}, nil); !errors.Is(err, fsm.ErrDamaged) {
		t.Errorf("a description in an entry of version 2: %v", err)
	}
	if err := newTape().Apply(1, 1, append([]byte{3, 0, 8, 1, 0x81, 0x80, 0x80, 0x01}, bytes.Repeat([]byte("x"), 1<<21+1)...), nil); !errors.Is(err, fsm.ErrDamaged) {
		t.Errorf("a long description: %v", err)
	}
	d := noteDefinition
	d.Description = strings.Repeat("x", 1<<20+1)
	if err := d.CheckLogged(); err == nil || !strings.Contains(err.Error(), fmt.Sprint("at most ", 1<<20)) {
		t.Errorf("a long description in a definition: %v", err)
	}
}

// FuzzCompatible reads any descriptions of a log.
func FuzzCompatible(f *testing.F) {
	f.Add(bankTypes)
	f.Add("message .A\n1 a .A\n2 b uint\nstate .A\n")
	f.Add("limit Window 9\nlimit Results 9")
	f.Fuzz(func(t *testing.T, then string) {
		// A message has a line of 8 bytes and takes a map.
		allocated.Within(t, 100*len(bankTypes)+100*len(then), func() {
			if err := fsm.Compatible(then, bankTypes); err != nil && !errors.Is(err, fsm.ErrDamaged) && !errors.Is(err, fsm.ErrIncompatible) {
				t.Error(err)
			}
		})
	})
}
