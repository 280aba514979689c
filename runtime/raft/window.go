package raft

import "github.com/topogen/topogen/runtime/transport"

// messageHeadBytes is what a message takes beside its entries, at most: ten numbers
// of ten bytes, with their tags.
const messageHeadBytes = 10 * (10 + 1)

// windowBytesMax is what a leader has on its way to a follower, at most: messages
// until the engine has counted inflightBytesMax, the one that reaches it, and what
// the engine does not count, which is all but the data of entries. A follower that
// is behind gets nothing else until it has answered.
const windowBytesMax = inflightBytesMax + entryBytesMax + inflightMax*(messageBytesMax+messageHeadBytes)

// windowMessagesMax is how many messages that is, at most: behind each append one
// that tells of a commit, and as many again for answers to reads and proposals.
const windowMessagesMax = 4 * inflightMax

// The window fits into what may wait for a peer, so that nothing is dropped while a
// peer is connected. Otherwise this does not compile: the constants are negative.
const (
	_ = uint64(transport.QueueBytes - windowBytesMax)
	_ = uint64(transport.QueueMessages - windowMessagesMax)
)
