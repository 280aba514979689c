package cluster

import (
	"testing"

	"github.com/topogen/topogen/runtime/piper"
)

// TestMailboxConfirmsWhatItHasReplies posts the reply to a second message, and reports it,
// after the mailbox was emptied. The count of the first look must not contain it, because
// its reply comes with the second look.
func TestMailboxConfirmsWhatItHasReplies(t *testing.T) {
	b := newMailbox()
	in := &inPair{}
	a := &piper.Arrivals{State: in}
	b.Reply(a, 1, nil, nil)
	b.Handled(a, 1)
	var first, second happened
	b.take(&first)
	b.Reply(a, 2, nil, nil)
	b.Handled(a, 2)
	if len(first.replies) != 1 || len(first.handled) != 1 || in.done != 1 {
		t.Errorf("first look: %d replies and %d handled messages, want 1 and 1", len(first.replies), in.done)
	}
	b.take(&second)
	if len(second.replies) != 1 || len(second.handled) != 1 || in.done != 2 {
		t.Errorf("second look: %d replies and %d handled messages, want 1 and 2", len(second.replies), in.done)
	}
}
