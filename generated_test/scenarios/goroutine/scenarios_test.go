package goroutine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/scenarios"
)

// TestScenarios runs all scenarios in virtual time, in which no event is late.
func TestScenarios(t *testing.T) {
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scenario(t, scenarios.Theatre{Stage: stage, Patience: time.Minute, Abandons: true})
			})
		})
	}
}

// TestSteppedScenarios runs them under a Stepper.
func TestSteppedScenarios(t *testing.T) {
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			scenario(t, scenarios.Theatre{Stage: stage, Slack: 2 * time.Millisecond, Patience: time.Minute, Abandons: true, Stepped: true})
		})
	}
}
