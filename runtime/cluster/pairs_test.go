package cluster

import (
	"bytes"
	"errors"
	"testing"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/piper/border"
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
	r.pair.forward(r.pair.peer.core.now, border.Chunk{Data: make([]byte, 2), Messages: 2})
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
	r.pair = p.newPair(border.Pair{}, r, nil)
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
			kept += k.left()
		}
	}
	if r.handled+r.dropped+kept != r.sent || r.pair.peer.kept != uint64(kept) {
		t.Errorf("%d were handled, %d dropped, %d are kept (%d by the peer), want %d together", r.handled, r.dropped, kept, r.pair.peer.kept, r.sent)
	}
}

// TestUnsentMessagesAreNotConfirmed confirms messages that the session has not sent yet. A
// correct node cannot have them.
func TestUnsentMessagesAreNotConfirmed(t *testing.T) {
	r := newRefilling(t, 0)
	p := r.pair.peer
	check := func(n uint64, handled int, refused bool) {
		t.Helper()
		if err := r.pair.confirm(n); errors.Is(err, errMalformed) != refused {
			t.Errorf("%d messages are confirmed: got the error %v, want one: %v", n, err, refused)
		}
		if r.handled != handled {
			t.Errorf("%d messages are confirmed: %d were handled, want %d", n, r.handled, handled)
		}
		r.check(t)
	}
	check(1, 0, true) // three chunks wait, and the message that opens the pair
	p.transmit(p.core.now)
	check(2, 2, false)
	r.send()
	check(6, 6, false)
	check(7, 6, true)
	p.transmit(p.core.now)
	check(8, 8, false)
	check(9, 8, true)
}

// TestPartOfAMessageIsConfirmed confirms a large message of which the session has sent only a part, which a
// correct node does not do. The session sends the rest all the same.
func TestPartOfAMessageIsConfirmed(t *testing.T) {
	r := newRefilling(t, 0)
	p := r.pair.peer
	p.transmit(p.core.now)
	if err := r.pair.confirm(6); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte{1}, 4*session.FrameBytesMax)
	r.sent++
	r.pair.forward(p.core.now, border.Chunk{Data: large, Messages: 1})
	first := p.session.Frame(p.core.now)
	if first == nil || !p.session.Waits() {
		t.Fatal("no part of the message was sent, or all of it")
	}
	if err := r.pair.confirm(7); err != nil {
		t.Error(err)
	}
	r.check(t)
	sent := bytes.Count(first, []byte{1})
	for f := p.session.Frame(p.core.now); f != nil; f = p.session.Frame(p.core.now) {
		sent += bytes.Count(f, []byte{1})
	}
	if sent < len(large) {
		t.Errorf("%d bytes of the message were sent, want %d", sent, len(large))
	}
}

// TestMessagesAreSentWhileOthersAreSettled passes on messages while others of the pair are
// confirmed, dropped or lost.
func TestMessagesAreSentWhileOthersAreSettled(t *testing.T) {
	t.Run("confirmed", func(t *testing.T) {
		r := newRefilling(t, 20)
		for n := uint64(1); n <= 30; n += 3 {
			r.pair.peer.transmit(r.pair.peer.core.now)
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
		p.transmit(p.core.now)
		p.left, p.waitedFor = true, true
		r.pair.restart()
		r.check(t)
		if r.dropped != r.sent {
			t.Errorf("%d of %d messages were dropped", r.dropped, r.sent)
		}
	})
}

// TestLostMessagesAfterOthers loses messages that were sent at most once, behind others that
// are sent again to the next process. Then the others expire, or are handled. The lost
// messages must be counted as dropped, although nothing else happens to the pair.
func TestLostMessagesAfterOthers(t *testing.T) {
	for _, expires := range []bool{true, false} {
		r := newRefilling(t, 0)
		p := r.pair.peer
		p.transmit(p.core.now)
		r.pair.kept[2].atMostOnce = true
		r.pair.kept[2].since++
		p.reachable = false
		r.pair.restart()
		if expires {
			r.pair.expire(r.pair.kept[1].since, errors.New("expired"))
		}
		p.reachable = true
		p.resume()
		if !expires {
			p.transmit(p.core.now)
			if err := r.pair.confirm(4); err != nil {
				t.Fatal(err)
			}
		}
		r.check(t)
		if r.handled+r.dropped != r.sent {
			t.Errorf("expires %v: %d messages were handled and %d dropped of %d", expires, r.handled, r.dropped, r.sent)
		}
	}
}
