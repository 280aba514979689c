package localtests_test

import (
	"github.com/topogen/topogen/generated_test/settings"
	"slices"
	"testing"
)

// TestSettingsCallsInTheTimedForm checks that the handlers of a processor in a group with shutdown
// are called, in the generated form with time limits.
func TestSettingsCallsInTheTimedForm(t *testing.T) {
	topology, err := settings.New(settings.Processors{})
	if err != nil {
		t.Fatal(err)
	}
	s := topology.Stepper(1)
	if err := topology.Api().SendBall(t.Context(), settings.Ball{}); err != nil {
		t.Fatal(err)
	}
	topology.Api().Close()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	single := topology.Single(0)
	if !slices.Equal(single.Balls, []settings.Ball{{Laps: 10}}) || !slices.Equal(single.Noons, []settings.Noon{{Day: 1}}) {
		t.Errorf("single got %v and %v", single.Balls, single.Noons)
	}
}
