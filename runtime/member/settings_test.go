package member

import (
	"testing"

	"github.com/topogen/topogen/internal/test/effects"
)

// TestSettingsReachTheDetector names the tests that observe the effect of each setting.
func TestSettingsReachTheDetector(t *testing.T) {
	effects.Check(t, effects.Table{
		"Config.Profile":         effects.By("TestBoundOfDetection"),
		"Config.Interval":        effects.By("TestTranscripts"),
		"Config.DirectTimeout":   effects.By("TestTranscripts"),
		"Config.IndirectTimeout": effects.By("TestTranscripts"),
		"Config.Helpers":         effects.By("TestTranscripts"),
		"Config.Suspicion":       effects.By("TestTranscripts"),
		"Config.Fence":           effects.By("TestHalf"),
		"Config.TieBreaker":      effects.By("TestHalf"),
		"Config.ForgetDead":      effects.By("TestForgottenTogether"),
		"Config.ForgetLeft":      effects.By("TestForgottenTogether"),
	}, Config{})
}
