package localtests_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/scenarios"
	"github.com/topogen/topogen/generated_test/scenarios/goroutine"
)

// TestScenarios runs all scenarios in virtual time, in which no event is late.
func TestScenarios(t *testing.T) {
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scenario(t, scenarios.Theatre{Stage: goroutine.Stage, Patience: time.Minute, Abandons: true})
			})
		})
	}
}

// TestScenariosStepped runs all scenarios under a Stepper.
func TestScenariosStepped(t *testing.T) {
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			scenario(t, scenarios.Theatre{Stage: goroutine.Stage, Slack: 2 * time.Millisecond, Patience: time.Minute, Abandons: true, Stepped: true})
		})
	}
}
