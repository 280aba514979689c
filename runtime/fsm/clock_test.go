package fsm_test

import (
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// steppedHost is a pool under a Stepper, with the Stepper's clock.
type steppedHost struct {
	*host
	now time.Time
}

func (h *steppedHost) Time() time.Time { return h.now }

// TestTimeUnderAStepper: updates get the time of the topology's clock, so a test sees
// the same times in each run.
func TestTimeUnderAStepper(t *testing.T) {
	p, h := fsm.NewProcessor(stampedDefinition), &steppedHost{newHost(), time.Unix(1, 0)}
	if err := p.Start(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Propose(t.Context(), stamped{}); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Hour)
	}
	err := p.Read(t.Context(), func(s *tape) {
		if s.values[2] != 1e9 || s.values[5] != int64(time.Hour)+1e9 {
			t.Errorf("the state has %v", s.values)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
