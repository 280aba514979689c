package localtests_test

import (
	"github.com/topogen/topogen/generated_test/noedges"
	"testing"
)

func TestNoEdgesRun(t *testing.T) {
	top, err := noedges.New(noedges.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	top.Api().Close()
	if err := top.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := top.Tree().EdgesCount(); n != 0 || noedges.EdgeIndex(0).String() != "EdgeIndex(0)" {
		t.Error(n)
	}
}
