package process

import (
	"os"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/scenarios"
)

// TestMain sets GORACE, because a process with the race detector would wait for a second
// before it ends. The processes of the instances inherit the variable.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// TestScenarios runs all scenarios with processes, in real time.
func TestScenarios(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("takes long: set CI")
	}
	for name, scenario := range scenarios.All {
		t.Run(name, func(t *testing.T) {
			if name == "window resets the counter" && os.Getenv("CI") == "" {
				t.Skip("it takes three windows")
			}
			scenario(t, scenarios.Theatre{Stage: stage, Slack: slack, Patience: time.Minute})
		})
	}
}
