//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"fmt"
	"testing"

	"github.com/topogen/topogen/internal/test/effects"
)

// TestSettingsReachTheProcess names the tests that observe the effect of each setting.
func TestSettingsReachTheProcess(t *testing.T) {
	effects.Check(t, effects.Table{
		"Settings.Info":           effects.By("TestCall"),
		"Settings.Memory":         effects.By("TestMemory"),
		"Settings.StartupTimeout": effects.By("TestStartFails"),
		"Settings.CloseTimeout":   effects.By("TestCloseFails"),
		"Settings.Logger":         effects.By("TestOutput"),
		"Settings.OnAlive":        effects.By("TestAlive"),
		"Settings.OnLate":         effects.By("generated_test/processtests TestHangingProcessesRestart"),
		"Settings.OnStart": func(t *testing.T) {
			s, started := settings("camera"), 0
			s.OnStart = func(pid int) { started = pid }
			r, err := StartRemote(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.child.Kill(); <-r.child.Done() })
			if started != r.child.PID() {
				t.Errorf("OnStart got %d, want the process ID %d", started, r.child.PID())
			}
		},
		"Settings.Attempt": effects.By("generated_test/processtests TestHoldsAttempts"),
		"Settings.OnHolds": effects.By("generated_test/processtests TestHoldsHeldJobsAreDone"),

		"Info.Topology":       effects.By("TestStartFails"),
		"Info.Hash":           effects.By("TestAnotherBuild"),
		"Info.Processor":      effects.By("TestCall"),
		"Info.ProcessorIndex": effects.By("TestCall"),
		"Info.Instance":       effects.By("TestCall"),
		"Info.Instances":      effects.By("TestCall"),
		"Info.MessageLimit":   effects.By("TestMessageLimit"),
		"Info.FencingToken": func(t *testing.T) {
			s := settings("camera")
			s.FencingToken = 1<<48 - 1
			c, err := Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Kill(); <-c.Done() })
			a, err := c.Call(Receive, 0, []byte("token"))
			want := fmt.Sprintf("{Processor:camera Index:%d Number:%d token:281474976710655} 281474976710655", s.Instance, s.Instances)
			if err != nil || string(a.Reply) != want {
				t.Errorf("the process has the tokens %s, want %s: %v", a.Reply, want, err)
			}
		},

		variable: effects.By("TestHostileVariable"),
		secret:   effects.By("TestWhatIsInherited"),
	}, Settings{}, Info{})
}
