package supervise

import (
	"testing"

	"github.com/topogen/topogen/internal/test/effects"
)

// TestSettingsReachTheSupervisor names the tests that observe the effect of each setting. The
// supervisor reads the description of generated code itself.
func TestSettingsReachTheSupervisor(t *testing.T) {
	effects.Check(t, effects.Table{
		"Spec.Processors": effects.By("TestRestart"),
		"Spec.Groups":     effects.By("TestGroups"),

		"Processor.Name":        effects.By("TestRestart"),
		"Processor.Instances":   effects.By("TestGroups"),
		"Processor.Supervised":  effects.By("TestRestart"),
		"Processor.Policy":      effects.By("TestOTP"),
		"Processor.MaxRestarts": effects.By("TestRestart"),
		"Processor.Delay":       effects.By("TestRestart"),
		"Processor.MaxDelay":    effects.By("TestRestart"),
		"Processor.Window":      effects.By("TestRestart"),
		"Processor.Jitter":      effects.By("TestRestart"),

		"Group.Name":       effects.By("TestGroups"),
		"Group.Processors": effects.By("TestGroups"),
		"Group.Strategy":   effects.By("TestOTP"),
		"Group.Intensity":  effects.By("TestGroups"),
		"Group.Period":     effects.By("TestGroups"),

		"Input.Timeout":    effects.By("TestInputs"),
		"Input.ArmAtStart": effects.By("TestInputs"),
	}, Spec{}, Processor{}, Group{}, Input{})
}
