package localtests_test

import (
	"testing"

	"github.com/topogen/topogen/generated_test/ownership"
	"github.com/topogen/topogen/runtime/pool"
)

func TestOwnershipReceiversOwnWhatTheyGet(t *testing.T) {
	ownership.Clones = 0
	top, err := ownership.New(ownership.Processors{}, pool.Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ownership.Clones != 3+1+3 {
		t.Errorf("%d clones; the last receiver of a message gets the original", ownership.Clones)
	}
	seen := make(map[*int]bool)
	own := func(list []int) {
		t.Helper()
		if len(list) != 1 || seen[&list[0]] {
			t.Errorf("%v is missing or not of its own", list)
			return
		}
		seen[&list[0]] = true
	}
	one := top.One(0)
	own(one.Cloned)
	own(one.Must)
	for i := range 3 {
		two := top.Two(i)
		own(two.Cloned)
		own(two.Must)
		if &two.Shared[0] != &one.Shared[0] {
			t.Error("a shared message was copied")
		}
		if i > 0 {
			own(two.Spread)
		}
	}
}
