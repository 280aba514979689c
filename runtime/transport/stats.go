package transport

// Stats is what a transport has done, over all peers and for each by itself.
type Stats struct {
	Traffic
	Peers []PeerStats // ascending by name
}

// PeerStats is what a transport has done for one peer.
type PeerStats struct {
	Name      string
	Connected bool // what is sent to it now goes out
	Queued    int  // messages that wait to go out
	Traffic
}

// Traffic counts messages. At rest, what was handed to Send is
// Sent + Dropped + what is queued.
type Traffic struct {
	Sent          uint64 // messages handed on to the network
	SentBytes     uint64 // their payloads
	Received      uint64 // messages handed to a receive
	ReceivedBytes uint64 // their payloads
	Dropped       uint64 // messages that could not be sent: the queue full, the peer unknown or gone
	Unclaimed     uint64 // messages that came for a group without a handler
	Refused       uint64 // connections, streams and frames refused: a wrong identity, garbage, too large
}

// Add adds what another has counted.
func (t *Traffic) Add(o Traffic) {
	t.Sent += o.Sent
	t.SentBytes += o.SentBytes
	t.Received += o.Received
	t.ReceivedBytes += o.ReceivedBytes
	t.Dropped += o.Dropped
	t.Unclaimed += o.Unclaimed
	t.Refused += o.Refused
}
