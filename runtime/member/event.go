package member

import "fmt"

// EventKind is the kind of an [Event].
type EventKind uint8

const (
	// EventJoined reports a process that was unknown before: a new member, or a member
	// with a higher boot id. In the latter case the former process has ended, even if no
	// EventDead was reported for it.
	EventJoined EventKind = iota
	// EventAlive reports that a member which was ProbeFailed, Suspected or Dead is alive.
	EventAlive
	// EventProbeFailed reports that a direct probe failed.
	EventProbeFailed
	// EventSuspected reports a suspicion.
	EventSuspected
	// EventDead reports that a member did not refute a suspicion in time.
	EventDead
	// EventLeft reports that a member ended on purpose or was removed.
	EventLeft
	// EventForgotten reports that a member which was Dead or Left for a long time is not
	// in the list of members any more.
	EventForgotten
	// EventUpdated reports that a member has another address or other meta data.
	EventUpdated
	// EventFenced reports that this node reaches no majority of the known members. The
	// Member is the node itself, as for all events below.
	EventFenced
	// EventUnfenced reports that this node reaches a majority again.
	EventUnfenced
	// EventReplaced reports that a process with the name of this node and a higher boot
	// id has joined. The detector of this process is fenced and does nothing more.
	EventReplaced
	// EventDuplicate reports that two processes with the name of the member run at the
	// same time. It is reported once for each boot id.
	EventDuplicate
	// EventLost reports that the observer was so slow that events were dropped. Read the
	// list of members.
	EventLost
)

var eventNames = [...]string{
	"joined", "alive", "probe-failed", "suspected", "dead", "left", "forgotten", "updated",
	"fenced", "unfenced", "replaced", "duplicate", "lost",
}

// String returns the name of a kind.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// Event is a change that a node has noticed.
type Event struct {
	Kind   EventKind
	Member Member // as it is after the event
}
