package lifecycle

import (
	"errors"
	"slices"
	"testing"

	"github.com/topogen/topogen/runtime/pool"
)

func TestOrder(t *testing.T) {
	calls = nil
	top, err := New(Processors{}, pool.Workers(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"a.Init", "b.Init", "b.Init", "a.Finish", "b.Finish", "b.Finish", "c.Finish",
		"c.Close", "b.Close", "b.Close", "a.Close",
	}
	if !slices.Equal(calls, want) {
		t.Errorf("%v, want %v", calls, want)
	}
	if n := top.C(0).n; n != 2*2+2 {
		t.Errorf("c: %d", n)
	}
}

func TestInitFails(t *testing.T) {
	defer func() { initErr = nil }()
	calls, initErr = nil, errors.New("no network")
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); !errors.Is(err, initErr) {
		t.Error(err)
	}
	if want := []string{"a.Init", "b.Init", "a.Close"}; !slices.Equal(calls, want) {
		t.Errorf("%v, want %v", calls, want)
	}
}
