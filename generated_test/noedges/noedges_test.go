package noedges

import "testing"

func TestRun(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	top.Api().Close()
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := top.Tree().EdgesCount(); n != 0 || EdgeIndex(0).String() != "EdgeIndex(0)" {
		t.Error(n)
	}
}
