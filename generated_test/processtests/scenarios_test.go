package processtests_test

import (
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/scenarios"
	"github.com/topogen/topogen/generated_test/scenarios/process"
	"github.com/topogen/topogen/internal/test/speed"
)

// TestScenarios runs all scenarios with processes, in real time.
func TestScenarios(t *testing.T) {
	speed.Landing(t) // scenarios/goroutine runs them in virtual time
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, scenarios.Theatre{Stage: process.Stage, Slack: slack, Patience: time.Minute})
		})
	}
}
