package nodetests_test

import (
	"github.com/topogen/topogen/generated_test/machinenames"
	"testing"
	"time"
)

func TestMachineNamesStepper(t *testing.T) {
	top, err := machinenames.New(machinenames.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s := top.Stepper(1)
	if err := s.Advance(5 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for i := range 2 {
		asked += top.Wal(i).Asked
		if w := top.Wal(i); w.Asked == 0 || w.Logged != w.Asked {
			t.Errorf("instance %d: %+v", i, w)
		}
	}
	for i := range 3 {
		if top.Wire(i).Heard != asked {
			t.Errorf("instance %d of wire has heard %d times, not %d", i, top.Wire(i).Heard, asked)
		}
	}
	if err := top.Fsm().Read(t.Context(), func(c *map[string]machinenames.Codec) {
		if (*c)["memory"].Value != "m" {
			t.Error(*c)
		}
	}); err != nil {
		t.Error(err)
	}
}
