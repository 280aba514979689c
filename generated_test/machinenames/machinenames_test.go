package machinenames

import (
	"testing"
	"time"
)

func TestStepper(t *testing.T) {
	top, err := New(Processors{})
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
		if top.Wire(i).heard != asked {
			t.Errorf("instance %d of wire has heard %d times, not %d", i, top.Wire(i).heard, asked)
		}
	}
	if err := top.Fsm().Read(t.Context(), func(c *map[string]Codec) {
		if (*c)["memory"].Value != "m" {
			t.Error(*c)
		}
	}); err != nil {
		t.Error(err)
	}
}
