package raft

import (
	"slices"
	"testing"
)

// TestInboxShares lets senders of valid messages fill the inbox while the node's loop is busy. A
// message of another node must still get in, until the loop takes all of them.
func TestInboxShares(t *testing.T) {
	for name, size := range map[string]int{"many messages": 0, "large messages": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			var b inbox
			for range inboxMessagesMax {
				for _, sender := range []string{"n2", "n3"} {
					b.add(&peerMessage{name: sender, bytes: size})
				}
			}
			if len(b.messages) > inboxMessagesMax || b.bytes > inboxBytesMax+size {
				t.Errorf("the inbox has %d messages with %d bytes", len(b.messages), b.bytes)
			}
			if n2, n3 := b.from["n2"], b.from["n3"]; n2.messages-n3.messages < -1 || n2.messages-n3.messages > 1 {
				t.Errorf("one sender has %d messages in the inbox, another one %d", n2.messages, n3.messages)
			}
			b.add(&peerMessage{name: "n1", bytes: size})
			if !slices.ContainsFunc(b.messages, func(m peerMessage) bool { return m.name == "n1" }) {
				t.Errorf("a message of n1 was dropped: the inbox has %d messages with %d bytes", len(b.messages), b.bytes)
			}
			var taken inbox
			b.swap(&taken, true)
			if b.add(&peerMessage{name: "n2", bytes: size}); len(b.messages) != 1 {
				t.Error("the inbox is empty, and a message was dropped")
			}
		})
	}
	var b inbox
	if b.add(&peerMessage{name: "n1", bytes: 2 * inboxBytesMax}); len(b.messages) != 1 {
		t.Error("a message that is larger than the inbox was dropped")
	}
}
