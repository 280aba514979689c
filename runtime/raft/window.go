package raft

import "github.com/topogen/topogen/runtime/transport"

// messageHeadBytes is the most that a message takes in addition to its entries: ten
// numbers of ten bytes, with their tags.
const messageHeadBytes = 10 * (10 + 1)

// windowBytesMax is the largest number of bytes that a leader sends to a follower before
// the follower answers. It is the sum of three numbers: inflightBytesMax, up to which the
// engine counts the data of entries; the message that reaches this limit; and the bytes
// that the engine does not count, which are all except the data of entries.
const windowBytesMax = inflightBytesMax + entryBytesMax + inflightMax*(messageBytesMax+messageHeadBytes)

// windowMessagesMax is the largest number of these messages. Each append may be followed
// by a message with a commit index, and there may be as many answers to reads and
// proposals.
const windowMessagesMax = 4 * inflightMax

// The window fits into the queue for a peer, so that no message is dropped while the peer
// is connected. If the window did not fit, these constants would be negative and would
// not compile.
const (
	_ = uint64(transport.QueueBytes - windowBytesMax)
	_ = uint64(transport.QueueMessages - windowMessagesMax)
	_ = uint64(transport.QueueBytes - passTriesMax*(passBytesMax+entryBytesMax))
)

// A follower limits the commands that it forwards to the leader without an answer,
// because the engine forwards all commands.
const (
	passBytesMax = 16 << 20 // bytes of commands without an answer; while there are fewer, one more entry is forwarded: the size of the largest update
	passTriesMax = 3        // how often commands are proposed while a connected peer does not read its messages
)

// forwardLimitReached reports whether commands must wait until earlier forwarded commands
// are answered. The caller holds c.proposalsMu.
func (c *Core) forwardLimitReached() bool {
	if c.leader == c.id || c.pending.forwardedBytes()+c.clientUpdates.forwardedBytes() < passBytesMax {
		return false
	}
	c.forwardLimited = true
	return true
}

// forwardedBytes returns the bytes of commands that were proposed and not answered.
func (p *pending) forwardedBytes() (bytes int) {
	for s := p.floor; s < p.unsent; s++ {
		bytes += len(p.at(s).data)
	}
	return bytes
}

// forwardedBytes returns the bytes of updates that were proposed and not answered,
// without the updates that will be proposed again.
func (c *clientUpdates) forwardedBytes() (bytes int) {
	for _, u := range c.list {
		if u.sent {
			bytes += len(u.data)
		}
	}
	for _, key := range c.unsent {
		if u := c.list[key]; u != nil && u.sent {
			bytes -= len(u.data)
		}
	}
	return bytes
}
