package session

// Event is something that the upper layer must know: [PeerStarted], [PeerRestarted]
// or [Refused].
type Event interface{ event() }

// PeerStarted says that the first incarnation of the peer was found. Messages that were
// queued before go to it.
type PeerStarted struct{ Boot uint64 }

// PeerRestarted says that a new incarnation of the peer has replaced the old one. The
// session has forgotten all messages that were passed to Send before this event. Some of
// them may have been delivered to the old incarnation. The upper layer sends again what
// the new incarnation needs. Messages that Receive returns later are from the new one.
type PeerRestarted struct {
	Old, New  uint64 // boot ids
	Forgotten uint64 // the number of messages that were queued or not acknowledged
}

// Refused says that one of the nodes does not accept the other. It is reported once for
// each reason and incarnation. The session continues to try, in case the plan of a node
// changes.
type Refused struct {
	ByPeer bool   // the peer has refused this node
	Boot   uint64 // the boot id of the peer
	Reason Reason
	Text   string // what the node that refused has expected and got
}

func (PeerStarted) event()   {}
func (PeerRestarted) event() {}
func (Refused) event()       {}

// Reason says why a node was refused.
type Reason uint8

// The reasons of a refusal.
const (
	VersionUnknown Reason = iota + 1
	OtherTopology
	PlanIncompatible
	WrongName
	Replaced // another process with the same name has replaced this one
	Excluded // the peer has excluded this process
	reasonsEnd
)

var reasonTexts = [...]string{VersionUnknown: "unknown version", OtherTopology: "other topology", PlanIncompatible: "incompatible plan", WrongName: "wrong node name", Replaced: "replaced by another process", Excluded: "excluded"}

func (r Reason) String() string {
	if r == 0 || r >= reasonsEnd {
		return "unknown reason"
	}
	return reasonTexts[r]
}
