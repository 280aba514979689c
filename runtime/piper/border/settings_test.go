package border

import (
	"errors"
	"testing"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/queue"
)

// TestSettingsOfEdgesBetweenNodes sets each setting of an edge that only matters in a cluster.
func TestSettingsOfEdgesBetweenNodes(t *testing.T) {
	b, x := testBorder(t, piper.Client(new(int)))
	if _, capacity := b.pairLimits(0, 1); capacity != 5 {
		t.Errorf("other nodes may send %d messages before one is handled, want 5", capacity)
	}
	if !b.aims(0, 1) {
		t.Error("messages go to all instances")
	}
	if err := x.SendNowhere(t.Context(), 0); !errors.Is(err, piper.ErrStays) {
		t.Errorf("a client sends the message: %v", err)
	}
	o, head := b.testOutlet(), new(queue.Head)
	head.Init(0, 5, nil)
	o.append("", nil, head, func(b []byte, _ int) ([]byte, error) { return b, nil })
	if !o.chunk.AtMostOnce {
		t.Error("messages are sent again after a lost connection")
	}
}
