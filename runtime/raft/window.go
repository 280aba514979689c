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
)
