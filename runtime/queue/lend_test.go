package queue

import (
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/internal/race"
)

// TestAKeptPointerReadsPoison checks that, with -race, a pointer that a handler kept
// reads neither its message nor a later one.
func TestAKeptPointerReadsPoison(t *testing.T) {
	type plain struct {
		A uint32
		B [3]uint16
	}
	type pointing struct {
		Name string
		Next *int
	}
	a, b := plain{1, [3]uint16{2, 3, 4}}, pointing{"a", new(int)}
	keptA, keptB := Lend(&a), Lend(&b)
	if *keptA != a || *keptB != b {
		t.Fatal("Lend does not return the message")
	}
	Reclaim(keptA)
	Reclaim(keptB)
	if !race.Enabled {
		if keptA != &a || keptB != &b {
			t.Error("without -race Lend must return the same pointer")
		}
		return
	}
	if a.A != 1 || b.Name != "a" {
		t.Error("the message itself was poisoned")
	}
	if keptA.A != 0xDBDBDBDB || keptA.B[2] != 0xDBDB {
		t.Errorf("a kept pointer reads %+v", *keptA)
	}
	if *keptB != (pointing{}) {
		t.Errorf("a kept pointer reads %+v", *keptB)
	}
}

// TestLendOfEachKind checks that values with pointers are not filled with poison, which
// the garbage collector would follow.
func TestLendOfEachKind(t *testing.T) {
	lent(t, struct{}{})
	lent(t, [0]*int{})
	lent(t, [2]any{1, "x"})
	lent(t, map[string]int{"a": 1})
	lent(t, []byte("abc"))
	lent(t, func() {})
	lent(t, make(chan int))
	lent(t, [3]struct{ E error }{})
	lent(t, 3.5)
	lent(t, complex(1, 2))
}

// TestLendWithoutTheRaceDetector repeats the tests in the run without the race detector.
func TestLendWithoutTheRaceDetector(t *testing.T) {
	speed.NoRace(t)
	t.Run("kept pointers", TestAKeptPointerReadsPoison)
	t.Run("each kind", TestLendOfEachKind)
}

func lent[T any](t *testing.T, v T) {
	t.Helper()
	Reclaim(Lend(&v))
	if !race.Enabled {
		if allocs := testing.AllocsPerRun(10, func() { Reclaim(Lend(&v)) }); allocs > 0 {
			t.Errorf("%T: %v allocations", v, allocs)
		}
	}
}
