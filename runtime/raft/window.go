package raft

import "github.com/topogen/topogen/runtime/transport"

// messageHeadBytes is what a message takes beside its entries, at most: ten numbers
// of ten bytes, with their tags.
const messageHeadBytes = 10 * (10 + 1)

// windowBytesMax is the most that a leader has on its way to a follower: messages
// until the engine has counted inflightBytesMax, the message that reaches this
// limit, and all bytes but the data of entries, which the engine does not count. A
// follower gets no more until it has answered.
const windowBytesMax = inflightBytesMax + entryBytesMax + inflightMax*(messageBytesMax+messageHeadBytes)

// windowMessagesMax is how many messages that is, at most: behind each append one
// that tells of a commit, and as many again for answers to reads and proposals.
const windowMessagesMax = 4 * inflightMax

// The window fits into the queue for a peer, so that nothing is dropped while a peer
// is connected. Otherwise this does not compile: the constants are negative.
const (
	_ = uint64(transport.QueueBytes - windowBytesMax)
	_ = uint64(transport.QueueMessages - windowMessagesMax)
	_ = uint64(transport.QueueBytes - passTriesMax*(passBytesMax+entryBytesMax))
)

// What a node that does not lead has on its way to the leader, at most: the engine
// passes on all that it is given.
const (
	passBytesMax = 16 << 20 // commands without an answer, before one more entry: as much as the largest update
	passTriesMax = 3        // times that they are proposed while a peer is connected and takes nothing
)

// passedEnough reports whether commands have to wait for answers to those that were
// passed on to the leader; c.proposals is locked.
func (c *Core) forwardLimitReached() bool {
	if c.leader == c.id || c.pending.forwardedBytes()+c.clientUpdates.forwardedBytes() < passBytesMax {
		return false
	}
	c.forwardLimited = true
	return true
}

// passed is how many bytes of commands were proposed and not answered.
func (p *pending) forwardedBytes() (bytes int) {
	for s := p.floor; s < p.unsent; s++ {
		bytes += len(p.at(s).data)
	}
	return bytes
}

// passed is how many bytes of updates were proposed and not answered, but for those
// that are to be proposed again.
func (f *clientUpdates) forwardedBytes() (bytes int) {
	for _, u := range f.list {
		if u.sent {
			bytes += len(u.data)
		}
	}
	for _, key := range f.unsent {
		if u := f.list[key]; u != nil && u.sent {
			bytes -= len(u.data)
		}
	}
	return bytes
}
