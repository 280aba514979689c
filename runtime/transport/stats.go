package transport

// Stats are the statistics of a transport, in total and for each peer.
type Stats struct {
	Traffic
	Peers []PeerStats // ascending by name
}

// PeerStats are the statistics of one peer.
type PeerStats struct {
	Name      string
	Connected bool // messages to the peer are sent now
	Queued    int  // messages in the queue
	Traffic
}

// Traffic counts messages. When the transport is idle, the messages handed to Send are
// Sent + Dropped + queued.
type Traffic struct {
	Sent          uint64 // messages handed to the network
	SentBytes     uint64 // their payloads
	Received      uint64 // messages handed to a receive function
	ReceivedBytes uint64 // their payloads
	Dropped       uint64 // messages that could not be sent: the queue was full, or the peer unknown or not reachable
	Unclaimed     uint64 // messages received for a group without a handler
	Refused       uint64 // refused connections, streams and frames: wrong identity, invalid or too large
}

// Add adds the counts of another Traffic.
func (t *Traffic) Add(o Traffic) {
	t.Sent += o.Sent
	t.SentBytes += o.SentBytes
	t.Received += o.Received
	t.ReceivedBytes += o.ReceivedBytes
	t.Dropped += o.Dropped
	t.Unclaimed += o.Unclaimed
	t.Refused += o.Refused
}
