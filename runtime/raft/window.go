package raft

import "github.com/topogen/topogen/runtime/transport"

// messageHeadBytes is the most that a message takes in addition to its entries: ten
// numbers of ten bytes, with their tags.
const messageHeadBytes = 10 * (10 + 1)

// windowBytesMax is the most that a leader sends to a follower before the follower
// answers: messages until the engine has counted inflightBytesMax, the message that
// reaches this limit, and the bytes that the engine does not count, which are all except
// the data of entries.
const windowBytesMax = inflightBytesMax + entryBytesMax + inflightMax*(messageBytesMax+messageHeadBytes)

// windowMessagesMax is the largest number of these messages: after each append a message
// about a commit, and the same number of answers to reads and proposals.
const windowMessagesMax = 4 * inflightMax

// The window fits into the queue for a peer, so that nothing is dropped while the peer is
// connected. If it did not fit, these constants would be negative and would not compile.
const (
	_ = uint64(transport.QueueBytes - windowBytesMax)
	_ = uint64(transport.QueueMessages - windowMessagesMax)
	_ = uint64(transport.QueueBytes - passTriesMax*(passBytesMax+entryBytesMax))
)

// Limits of what a follower forwards to the leader without an answer. The engine forwards
// everything that it is given.
const (
	passBytesMax = 16 << 20 // commands without an answer, before one more entry: the size of the largest update
	passTriesMax = 3        // how often they are proposed while a connected peer takes nothing
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
