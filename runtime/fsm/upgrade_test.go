package fsm_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/topogen/topogen/runtime/fsm"
)

const (
	olderTypes = "state .A\nupdate .U\nmessage A\n1 X int64\nmessage U\n1 X int64\n"
	newerTypes = olderTypes + "2 Y string\n"
)

// announceFrom applies the announcement of a node that starts.
func announceFrom(r *replicated, node uint64, description string) (refused, err error) {
	var b fsm.Batch
	b.Describe(node, description, 7)
	err = r.Apply(r.Applied()+1, 1, b.Bytes(), func(_, _ uint64, a fsm.Applied) { refused = a.Err })
	return refused, err
}

// TestUpgrade: updates may use the newer fields when the last member announces the
// newer program or leaves, in any order and also after a snapshot. A node may return to
// the older program before that. After that it stops.
func TestUpgrade(t *testing.T) {
	older, newer := described(olderTypes, fsm.Options{}).Description(), described(newerTypes, fsm.Options{}).Description()
	with := []byte{1 << 3, 2, 2<<3 | 2, 1, 'x'}
	for _, restart := range []bool{false, true} {
		r, old := described(newerTypes, fsm.Options{}), described(olderTypes, fsm.Options{})
		both := func(node uint64, description string) (oldEnds error) {
			t.Helper()
			refused, err := announceFrom(r, node, description)
			if refused != nil || err != nil {
				t.Fatalf("node %d: %v, %v", node, refused, err)
			}
			if restart {
				b, err := r.AppendSnapshot(nil)
				if err != nil {
					t.Fatal(err)
				}
				r = described(newerTypes, fsm.Options{})
				if err := r.Restore(b); err != nil {
					t.Fatal(err)
				}
				if err := r.Members([]uint64{1, 2}, []uint64{3}); err != nil {
					t.Fatal(err)
				}
			}
			_, err = announceFrom(old, node, description)
			return err
		}
		allowed := func(is bool, behind ...uint64) {
			t.Helper()
			a := r.Notes(1, 1<<30).Allowed
			if err := a.Check(with); is != (err == nil) || err != nil && !errors.Is(err, fsm.ErrNotYet) {
				t.Errorf("an update with the newer field: %v", err)
			}
			if !is && fmt.Sprint(a.Behind) != fmt.Sprint(behind) {
				t.Errorf("nodes behind: %v, want %v", a.Behind, behind)
			}
			if err := old.Notes(1, 1<<30).Allowed.Check(with[:2]); err != nil {
				t.Errorf("an older program: %v", err)
			}
		}
		_, _ = r.Members([]uint64{1, 2}, []uint64{3}), old.Members([]uint64{1, 2}, []uint64{3})
		for node := range uint64(3) {
			if err := both(node+1, older); err != nil {
				t.Fatal(err)
			}
		}
		allowed(false, 1, 2, 3)
		for _, s := range []struct {
			node  uint64
			types string
		}{{2, newer}, {1, newer}, {2, older}, {2, newer}, {9, older}} {
			if err := both(s.node, s.types); err != nil {
				t.Fatal(err)
			}
		}
		allowed(false, 3)
		if err := old.Notes(3, 1<<30); err.Describe {
			t.Error("node 3 should announce its program again, although the log has it")
		}
		if n := r.Notes(3, 1<<30); !n.Describe {
			t.Error("node 3 has another program, and should announce it")
		}
		if err := both(3, newer); !errors.Is(err, fsm.ErrIncompatible) || !strings.Contains(err.Error(), "field 2 of U, Y, was string") || !strings.Contains(err.Error(), "start this node with the same program") {
			t.Errorf("a node with the older program when all others have the newer one: %v", err)
		}
		allowed(true)
		if refused, err := announceFrom(r, 3, older); !errors.Is(refused, fsm.ErrIncompatible) || err != nil {
			t.Errorf("a node returns to the older program: %v, %v", refused, err)
		}
	}
}

// TestUpgradeWithoutAMember: a member that lags behind is removed.
func TestUpgradeWithoutAMember(t *testing.T) {
	r := described(newerTypes, fsm.Options{})
	_ = r.Members([]uint64{1, 2}, nil)
	for node, types := range []string{1: olderTypes, 2: newerTypes} {
		if types == "" {
			continue
		}
		if _, err := announceFrom(r, uint64(node), described(types, fsm.Options{}).Description()); err != nil {
			t.Fatal(err)
		}
	}
	if r.Notes(1, 1<<30).Allowed == nil {
		t.Error("all fields are allowed while member 1 has the older program")
	}
	if err := r.Members([]uint64{2}, nil); err != nil {
		t.Fatal(err)
	}
	if r.Notes(1, 1<<30).Allowed != nil {
		t.Error("some fields are not allowed, although member 1 was removed")
	}
}

// TestAllowed: fields of an update are checked at each depth. A number that fits only
// the type of the newer program is refused, too.
func TestAllowed(t *testing.T) {
	const then = "update .U\nmessage U\n1 A .V\n2 List list .V\n3 Map map string .V\n4 N int32\n5 Ns list int32\n6 P optional .V\n7 F float64\n8 U uint32\n9 Mixed map int32 bool\nmessage V\n1 X string\n"
	now := strings.NewReplacer("int32", "int64", "uint32", "uint64").Replace(then) + "2 Y string\nmessage W\n1 Z bool\n"
	now = strings.Replace(now, "message V\n", "10 New .W\nmessage V\n", 1)
	r := described(now, fsm.Options{})
	if _, err := announceFrom(r, 1, described(then, fsm.Options{}).Description()); err != nil {
		t.Fatal(err)
	}
	_ = r.Members([]uint64{1}, nil)
	a := r.Notes(1, 1<<30).Allowed
	if a == nil {
		t.Fatal("all fields are allowed")
	}
	bytes := func(number byte, b ...byte) []byte { return append([]byte{number<<3 | 2, byte(len(b))}, b...) }
	varint := func(number byte, v uint64) []byte { return binary.AppendUvarint([]byte{number << 3}, v) }
	x, y := bytes(1, 'x'), bytes(2, 'y')
	wide, most := uint64(1<<32), uint64(1<<32-1) // zigzag for 2^31, which does not fit int32, and for -2^31, which does
	for _, c := range []struct {
		name string
		b    []byte
		says string // "": the update is allowed
	}{
		{"an empty update", nil, ""},
		{"a known field", bytes(1, x...), ""},
		{"an unknown field in a message", bytes(1, y...), "field 2 of V, Y,"},
		{"an unknown field after a known one", bytes(1, append(bytes(1, 'x'), y...)...), "field 2 of V, Y,"},
		{"an unknown field in a list", append(bytes(2, x...), bytes(2, y...)...), "field 2 of V, Y,"},
		{"an unknown field in a map", bytes(3, append(bytes(1, 'k'), bytes(2, y...)...)...), "field 2 of V, Y,"},
		{"an unknown field behind a pointer", bytes(6, y...), "field 2 of V, Y,"},
		{"a map without unknown fields", bytes(3, append(bytes(1, 'k'), bytes(2, x...)...)...), ""},
		{"a message of the newer program", bytes(10, 8, 1), "field 10 of U, New,"},
		{"a number that fits", varint(4, most), ""},
		{"a number that does not", varint(4, wide), "field 4 of U, N, as int32"},
		{"a negative number that does not fit", varint(4, wide+1), "field 4 of U, N, as int32"},
		{"a list of numbers that fit", bytes(5, 1, 2, 3), ""},
		{"a list with a number that does not fit", bytes(5, append([]byte{1}, binary.AppendUvarint(nil, wide)...)...), "field 5 of U, Ns, as int32"},
		{"a list that is not packed", varint(5, wide), "field 5 of U, Ns, as int32"},
		{"an unsigned number that does not fit", varint(8, 1<<32), "field 8 of U, U, as uint32"},
		{"an unsigned number that fits", varint(8, 1<<32-1), ""},
		{"a key of a map", bytes(9, append(varint(1, wide), 16, 1)...), "field 9 of U, Mixed, as int32"},
		{"a float", append([]byte{7<<3 | 1}, make([]byte, 8)...), ""},
		{"nil in a list", bytes(2, 0xfa, 0xff, 0xff, 0xff, 0x0f, 0), ""},
	} {
		err := a.Check(c.b)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, fsm.ErrNotYet) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// FuzzAllowed: the check of an update terminates for all inputs.
func FuzzAllowed(f *testing.F) {
	r := described(newerTypes, fsm.Options{})
	if _, err := announceFrom(r, 1, described(olderTypes, fsm.Options{}).Description()); err != nil {
		f.Fatal(err)
	}
	_ = r.Members([]uint64{1}, nil)
	a := r.Notes(1, 1<<30).Allowed
	f.Add([]byte{8, 2, 18, 1, 'x'})
	f.Fuzz(func(_ *testing.T, b []byte) { _ = a.Check(b) })
}
