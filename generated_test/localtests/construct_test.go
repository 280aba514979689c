package localtests_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/construct"
	"github.com/topogen/topogen/generated_test/construct/other"
	"github.com/topogen/topogen/runtime/topo"
)

func TestConstructConfiguration(t *testing.T) {
	top, err := construct.New(construct.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	seven, hello := 7, "hello"
	want := construct.Config{
		Dir: "./in", Glob: "*.csv\n\"quoted\" // no comment", Limit: -5, Ratio: 0.25, Huge: 1<<64 - 1,
		Deep: construct.Deep{On: true, Names: []string{"a", "b"}, Pair: [2]int{1, 2}}, Also: &construct.Deep{On: true}, Optional: &seven, Text: &hello,
		Labels: map[string]int{"a": 1, "b": 2}, Every: 1500 * time.Millisecond, Waits: []time.Duration{time.Second, 2 * time.Hour, 0}, Level: "high",
	}
	for i := range 2 {
		c := top.Configured(i)
		if !reflect.DeepEqual(c.Config, want) {
			t.Errorf("%+v, want %+v", c.Config, want)
		}
		if c.In != (topo.Instance{Processor: "configured", Index: i, Number: 2}) {
			t.Errorf("%+v", c.In)
		}
	}
	if &top.Configured(0).Config.Deep.Names[0] == &top.Configured(1).Config.Deep.Names[0] {
		t.Error("instances share a configuration")
	}
	if top.Plain(0).N != 1 || top.Fails(2).Index != 2 || top.Pointer(0).In.Processor != "pointer" || top.Generic(0).Value != "x" || top.Elsewhere(0).Size != 3 || top.Sized(0).Size != 4 {
		t.Error("wrong instances")
	}
}

func TestConstructProcessorsWin(t *testing.T) {
	top, err := construct.New(construct.Processors{
		Zero:      func(in topo.Instance) (*construct.Zero, error) { return &construct.Zero{N: 7}, nil },
		Elsewhere: func(in topo.Instance) (*other.Thing, error) { return &other.Thing{Size: 8}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if top.Zero(0).N != 7 || top.Elsewhere(0).Size != 8 {
		t.Error("the fields of Processors were not used")
	}
	if err := top.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestConstructFailures(t *testing.T) {
	defer func() { construct.FailAt, construct.FailErr = -1, nil }()
	expect := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not say %q", err, w)
			}
		}
	}
	construct.FailAt, construct.FailErr = 2, errors.New("no disk")
	_, err := construct.New(construct.Processors{})
	expect(err, `processor "fails"`, "instance 2", "no disk")
	if !errors.Is(err, construct.FailErr) {
		t.Errorf("%v does not wrap it", err)
	}
	construct.FailAt = -2
	_, err = construct.New(construct.Processors{})
	expect(err, `processor "fails"`, "instance 0", "no luck", "NewFails")
	construct.FailAt = -1
	_, err = construct.New(construct.Processors{Zero: func(topo.Instance) (*construct.Zero, error) { return nil, nil }})
	expect(err, `processor "zero"`, "instance 0", "neither")
	t.Setenv("TOPOGEN_BATCH", "many")
	_, err = construct.New(construct.Processors{})
	expect(err, "TOPOGEN_BATCH", "many")
}
