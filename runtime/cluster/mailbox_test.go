package cluster

import (
	"sync"
	"testing"

	"github.com/topogen/topogen/runtime/piper/border"
)

// TestMailboxConfirmsWhatItHasReplies posts the reply to a second message, and reports it,
// after the mailbox was emptied. The count of the first look must not contain it, because
// its reply comes with the second look.
func TestMailboxConfirmsWhatItHasReplies(t *testing.T) {
	b := newMailbox()
	in := &inPair{}
	a := &border.Arrivals{State: in}
	b.Reply(a, border.Call{Number: 1}, nil, nil)
	b.Handled(a, 1)
	var first, second happened
	b.take(&first)
	b.Reply(a, border.Call{Number: 2}, nil, nil)
	b.Handled(a, 2)
	if len(first.replies) != 1 || len(first.handled) != 1 || in.done != 1 {
		t.Errorf("first look: %d replies and %d handled messages, want 1 and 1", len(first.replies), in.done)
	}
	b.take(&second)
	if len(second.replies) != 1 || len(second.handled) != 1 || in.done != 2 {
		t.Errorf("second look: %d replies and %d handled messages, want 1 and 2", len(second.replies), in.done)
	}
}

// TestNoConfirmationOvertakesReplies posts replies and the numbers of handled messages from
// several goroutines while another one empties the mailbox, as the core does. Each look
// must have the replies to all messages whose number it has read, and the last look must
// have everything.
func TestNoConfirmationOvertakesReplies(t *testing.T) {
	const pairs, messages = 4, 64_000
	b := newMailbox()
	list := make([]*inPair, pairs)
	replies := map[*inPair]uint64{}
	var posting sync.WaitGroup
	for i := range list {
		in := &inPair{}
		list[i] = in
		a := &border.Arrivals{State: in}
		posting.Go(func() {
			for n := uint64(1); n <= messages; n++ {
				b.Reply(a, border.Call{Number: n}, nil, nil)
				b.Handled(a, n)
			}
		})
	}
	posted := make(chan struct{})
	go func() {
		posting.Wait()
		close(posted)
	}()
	for last := false; !last; {
		select {
		case <-b.wake:
		case <-posted:
			last = true
		}
		var h happened
		b.take(&h)
		for _, r := range h.replies {
			replies[r.in]++
		}
		for _, in := range h.handled {
			if got := replies[in]; in.done > got {
				t.Fatalf("a look has counted %d messages, and got the replies to %d", in.done, got)
			}
		}
	}
	for i, in := range list {
		if in.done != messages || replies[in] != messages {
			t.Errorf("pair %d: the last look has counted %d messages and %d replies, want %d", i, in.done, replies[in], messages)
		}
	}
}

// TestMailboxIsBounded puts frames into the mailbox while the core does not look at it.
func TestMailboxIsBounded(t *testing.T) {
	b := newMailbox()
	data := make([]byte, 1<<20)
	for range 2 * mailBytesMax / len(data) {
		b.receive("n2", [][]byte{data})
	}
	if n := len(b.mail.frames); n != mailBytesMax/len(data) {
		t.Errorf("%d frames of 1 MiB wait, want %d", n, mailBytesMax/len(data))
	}
	var h happened
	b.take(&h)
	b.receive("n2", [][]byte{data})
	if n := len(b.mail.frames); n != 1 {
		t.Errorf("%d frames wait after the core has looked, want 1", n)
	}
}
