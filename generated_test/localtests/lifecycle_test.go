package localtests_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/topogen/topogen/generated_test/lifecycle"
	"github.com/topogen/topogen/runtime/pool"
)

func TestLifecycleOrder(t *testing.T) {
	lifecycle.Calls = nil
	top, err := lifecycle.New(lifecycle.Processors{}, pool.Workers(1))
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
	if !slices.Equal(lifecycle.Calls, want) {
		t.Errorf("%v, want %v", lifecycle.Calls, want)
	}
	if n := top.C(0).N; n != 2*2+2 {
		t.Errorf("c: %d", n)
	}
}

func TestLifecycleInitFails(t *testing.T) {
	defer func() { lifecycle.InitErr = nil }()
	lifecycle.Calls, lifecycle.InitErr = nil, errors.New("no network")
	top, err := lifecycle.New(lifecycle.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); !errors.Is(err, lifecycle.InitErr) {
		t.Error(err)
	}
	if want := []string{"a.Init", "b.Init", "a.Close"}; !slices.Equal(lifecycle.Calls, want) {
		t.Errorf("%v, want %v", lifecycle.Calls, want)
	}
}
