package settings

import (
	"slices"
	"testing"
)

// TestCallsInTheTimedForm checks that the handlers of a processor in a group with shutdown
// are called, in the generated form with time limits.
func TestCallsInTheTimedForm(t *testing.T) {
	topology, err := New(Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s := topology.Stepper(1)
	if err := topology.Api().SendBall(t.Context(), Ball{}); err != nil {
		t.Fatal(err)
	}
	topology.Api().Close()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	single := topology.Single(0)
	if !slices.Equal(single.Balls, []Ball{{Laps: 10}}) || !slices.Equal(single.Noons, []Noon{{Day: 1}}) {
		t.Errorf("single got %v and %v", single.Balls, single.Noons)
	}
}
