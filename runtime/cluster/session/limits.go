package session

import "time"

// Version is the version of the frames. A peer with another version is refused.
const Version = 1

// Limits of frames and messages. Both nodes check them.
const (
	MessageBytesMax = 64<<20 + 32<<10 // the largest message of a topology, and the messages that package cluster sends with it
	FrameBytesMax   = 64 << 10        // large enough that the header costs nothing, small enough that a frame takes 0.5 ms on a link of 1 Gbit/s

	// FragmentBytes is the length of a fragment of a larger message, and what a lane sends
	// in a turn. Two of them fit into a frame.
	FragmentBytes = 32<<10 - 256
	fragmentMin   = 4 << 10 // a fragment that only fills the rest of a frame is not shorter, so that fragments stay few

	// ReassemblyBytes limits the sum of the lengths of all messages that were sent in part.
	// The sender begins another large message only below the limit. So a receiver needs no
	// more memory for fragments, and two of the largest messages can be in transit.
	ReassemblyBytes = 2 * MessageBytesMax

	// SlotsMax is how many lanes have a number on the wire at a time. Other lanes take over
	// the number of an idle lane. A slot takes about 80 bytes on both nodes.
	SlotsMax = 1 << 14
)

// The window limits the frames that are sent and not acknowledged. So the queue of a
// transport, 16,384 messages and 128 MiB, never overflows, and the memory of frames that
// wait for a missing one is limited at the receiver.
const (
	WindowBytes  = 4 << 20 // 30 ms at 1 Gbit/s, more than the round trip in a data center
	WindowFrames = 1024    // small frames in 5 ms, the delay of an acknowledgement, at 200,000 frames per second
)

// An acknowledgement travels with data. Without data it is sent alone.
const (
	ackDelayMax = 5 * time.Millisecond // usually a reply comes earlier; far below the shortest retransmission timeout
	ackBytes    = WindowBytes / 16     // a sender with a full window continues long before its window is used up
	ackFrames   = WindowFrames / 16    // the same for small frames
)

// ControlLanes is the number of lanes for control messages: the lanes 0 to ControlLanes-1.
// Their messages go before those of all other lanes, see [Session.Send].
const ControlLanes = 16

// controlShare is the part of a frame that control messages may fill while other messages
// are queued, so that a flood of control messages delays them and does not stop them. A
// fragment fits into it.
const controlShare = itemsBytesMax * 3 / 4

// Defaults and limits of [Config].
const (
	RetryMinDefault = 50 * time.Millisecond // retry.min
	RetryMaxDefault = 2 * time.Second       // retry.max
	nameBytesMax    = 255                   // names of nodes and topologies
	planBytesMax    = 128                   // a hash and some words: a refusal has two of them in its text
	textBytesMax    = 255                   // the text of a refusal
)

// Timers of the handshake and of retransmissions.
const (
	firstTimeout     = time.Second      // before the round trip was measured (RFC 6298, 2.1)
	clockGranularity = time.Millisecond // of the driver's timers (G in RFC 6298)
	retryJitter      = 0.2              // the random part of a delay, so that many nodes do not send at the same time
	hellosInRow      = 4                // answers to hellos without a delay: two handshakes. Later ones wait for retry.min each
	formerMax        = 64               // former incarnations that are remembered, so that none of them returns
)
