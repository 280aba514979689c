package cluster

import (
	"errors"
	"testing"

	"github.com/topogen/topogen/runtime/piper"
)

// refilling is a settler that passes on a further message for each chunk that is settled,
// as a cast does when it gets a place.
type refilling struct {
	pair                      *outPair
	left                      int // chunks that it still passes on
	sent, handled, dropped, n int
}

func (r *refilling) send() {
	r.sent += 2
	r.n++
	r.pair.forward(r.pair.peer.core.now, piper.Chunk{Data: make([]byte, piper.ChunkRoom+2), Messages: 2})
}

func (r *refilling) Settle(n int, dropped error) {
	if dropped == nil {
		r.handled += n
	} else {
		r.dropped += n
	}
	if r.left > 0 {
		r.left--
		r.send()
	}
}

// newRefilling returns the pair of a refilling to another node that was found.
func newRefilling(t *testing.T, chunks int) *refilling {
	n := newPhaseNodes(t, "n1", "n2")
	n.start("n1")
	n.start("n2")
	n.run()
	p := n.cores["n1"].peers["n2"]
	r := &refilling{left: chunks}
	r.pair = p.newPair(piper.Pair{}, r, nil)
	for range 3 {
		r.send()
	}
	return r
}

// check checks that each message was counted once, or is kept.
func (r *refilling) check(t *testing.T) {
	t.Helper()
	kept := 0
	for _, k := range r.pair.kept {
		if !k.dropped {
			kept += k.messages - k.done
		}
	}
	if r.handled+r.dropped+kept != r.sent || r.pair.peer.kept != uint64(kept) {
		t.Errorf("%d were handled, %d dropped, %d are kept (%d by the peer), want %d together", r.handled, r.dropped, kept, r.pair.peer.kept, r.sent)
	}
}

// TestMessagesAreSentWhileOthersAreSettled passes on messages while others of the pair are
// confirmed, dropped or lost.
func TestMessagesAreSentWhileOthersAreSettled(t *testing.T) {
	t.Run("confirmed", func(t *testing.T) {
		r := newRefilling(t, 20)
		for n := uint64(1); n <= 30; n += 3 {
			if err := r.pair.confirm(n); err != nil {
				t.Fatal(err)
			}
			r.check(t)
		}
		if r.handled != 28 {
			t.Errorf("%d messages were handled, want 28", r.handled)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		r := newRefilling(t, 20)
		p := r.pair.peer
		p.left, p.waitedFor = true, true
		r.pair.expire(p.core.now, errors.New("gone"))
		r.check(t)
		if r.dropped != r.sent || r.n != 23 {
			t.Errorf("%d messages in %d chunks were dropped, want all %d in 23", r.dropped, r.n, r.sent)
		}
	})
	t.Run("lost", func(t *testing.T) {
		r := newRefilling(t, 20)
		for i := range r.pair.kept {
			r.pair.kept[i].atMostOnce = true
		}
		p := r.pair.peer
		p.left, p.waitedFor = true, true
		r.pair.restart()
		r.check(t)
		if r.dropped != r.sent {
			t.Errorf("%d of %d messages were dropped", r.dropped, r.sent)
		}
	})
}
