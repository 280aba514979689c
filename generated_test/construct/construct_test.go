package construct

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/construct/other"
	"github.com/topogen/topogen/runtime/topo"
)

func TestConfiguration(t *testing.T) {
	top, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	seven, hello := 7, "hello"
	want := Config{
		Dir: "./in", Glob: "*.csv\n\"quoted\" // no comment", Limit: -5, Ratio: 0.25, Huge: 1<<64 - 1,
		Deep: Deep{On: true, Names: []string{"a", "b"}, Pair: [2]int{1, 2}}, Also: &Deep{On: true}, Optional: &seven, Text: &hello,
		Labels: map[string]int{"a": 1, "b": 2}, Every: 1500 * time.Millisecond, Waits: []time.Duration{time.Second, 2 * time.Hour, 0}, Level: "high",
	}
	for i := range 2 {
		c := top.Configured(i)
		if !reflect.DeepEqual(c.c, want) {
			t.Errorf("%+v, want %+v", c.c, want)
		}
		if c.in != (topo.Instance{Processor: "configured", Index: i, Number: 2}) {
			t.Errorf("%+v", c.in)
		}
	}
	if &top.Configured(0).c.Deep.Names[0] == &top.Configured(1).c.Deep.Names[0] {
		t.Error("instances share a configuration")
	}
	if top.Plain(0).n != 1 || top.Fails(2).index != 2 || top.Pointer(0).in.Processor != "pointer" || top.Generic(0).value != "x" || top.Elsewhere(0).Size != 3 || top.Sized(0).Size != 4 {
		t.Error("wrong instances")
	}
}

func TestProcessorsWin(t *testing.T) {
	top, err := New(Processors{
		Zero:      func(in topo.Instance) (*Zero, error) { return &Zero{7}, nil },
		Elsewhere: func(in topo.Instance) (*other.Thing, error) { return &other.Thing{Size: 8}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if top.Zero(0).n != 7 || top.Elsewhere(0).Size != 8 {
		t.Error("the fields of Processors were not used")
	}
	if err := top.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	defer func() { failAt, failErr = -1, nil }()
	expect := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not say %q", err, w)
			}
		}
	}
	failAt, failErr = 2, errors.New("no disk")
	_, err := New(Processors{})
	expect(err, `processor "fails"`, "instance 2", "no disk")
	if !errors.Is(err, failErr) {
		t.Errorf("%v does not wrap it", err)
	}
	failAt = -2
	_, err = New(Processors{})
	expect(err, `processor "fails"`, "instance 0", "no luck", "NewFails")
	failAt = -1
	_, err = New(Processors{Zero: func(topo.Instance) (*Zero, error) { return nil, nil }})
	expect(err, `processor "zero"`, "instance 0", "neither")
	t.Setenv("TOPOGEN_BATCH", "many")
	_, err = New(Processors{})
	expect(err, "TOPOGEN_BATCH", "many")
}
