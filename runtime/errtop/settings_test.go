package errtop

import (
	"testing"

	"github.com/topogen/topogen/internal/test/effects"
)

// TestSettingsReachTheKeeper names the tests that observe the effect of each setting.
func TestSettingsReachTheKeeper(t *testing.T) {
	effects.Check(t, effects.Table{
		"Settings.Path":      effects.By("TestRestart"),
		"Settings.Top":       effects.By("TestMemoryIsBounded"),
		"Settings.Keep":      effects.By("TestKeepTime"),
		"Settings.DumpEvery": effects.By("TestDumps"),
		"Settings.Crash":     effects.By("TestCrash"),
		"Settings.Logger":    effects.By("TestFullDisk"),
	}, Settings{})
}
