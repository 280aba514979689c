package session

import "time"

// Stats are counts since New, and the current state. At any time,
// MessagesQueuedTotal is MessagesAcked + Forgotten + Pending.
type Stats struct {
	MessagesQueuedTotal uint64 // accepted by Send, or taken from a source
	MessagesAcked       uint64 // all their bytes have reached the peer
	Forgotten           uint64 // forgotten because the peer restarted
	Pending             uint64 // the others among them: not completely sent, or not acknowledged
	MessagesReceived    uint64 // returned by Receive
	BytesSent           uint64 // of all frames, headers and repetitions included
	BytesReceived       uint64
	FramesSent          uint64 // of all kinds
	FramesReceived      uint64
	FramesResent        uint64 // data frames that were sent again
	Timeouts            uint64 // retransmission timeouts
	Duplicates          uint64 // data frames that had arrived before
	Stale               uint64 // frames of or for another incarnation
	Overflows           uint64 // data frames outside of the window
	Malformed           uint64 // frames with an error
	Refusals            uint64 // hellos that were refused

	QueuedMessages              int  // accepted by Send and in no frame yet
	UnackedBytes, UnackedFrames int  // part of the window in use
	AheadBytes, AheadFrames     int  // received frames that wait for a missing one
	PartialBytes                int  // received bytes of incomplete messages
	AckPending                  bool // an acknowledgement will be sent
	Lanes                       int  // lanes of the sender that have a number or messages
	RTT                         time.Duration
	Peer                        uint64 // the boot id of the peer; 0: not known
}

// Stats returns the statistics.
func (s *Session) Stats() Stats {
	v := s.counts
	v.QueuedMessages = s.queue.listed
	v.UnackedBytes, v.UnackedFrames = s.flights.bytes, s.flights.len()
	v.AheadBytes, v.AheadFrames = s.in.aheadBytes, len(s.in.ahead)
	v.PartialBytes = s.in.partial
	v.Lanes, v.AckPending = len(s.queue.lanes), s.peer.boot != 0 && s.in.ackPending
	v.RTT, v.Peer = s.rtt.smooth, s.peer.boot
	v.Pending = s.queue.pending() + s.flights.messages
	v.MessagesQueuedTotal = v.MessagesAcked + v.Forgotten + v.Pending
	return v
}
