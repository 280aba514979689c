package goroutine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/scenarios"
)

// TestScenarios plays all of them in virtual time, where nothing is ever late.
func TestScenarios(t *testing.T) {
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scenario(t, scenarios.Theatre{Stage: stage, Patience: time.Minute, Abandons: true})
			})
		})
	}
}

// TestSteppedScenarios plays them in one goroutine.
func TestSteppedScenarios(t *testing.T) {
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			scenario(t, scenarios.Theatre{Stage: stage, Slack: 2 * time.Millisecond, Patience: time.Minute, Abandons: true, Stepped: true})
		})
	}
}
