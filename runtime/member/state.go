package member

import (
	"fmt"
	"time"
)

// State is what a node knows about a member. The first four are the states of the
// document, section 3.1.
type State uint8

const (
	// Alive members answer probes, or were heard in another way.
	Alive State = iota
	// ProbeFailed members did not answer a direct probe in time. Helpers probe them. The
	// other nodes are not informed.
	ProbeFailed
	// Suspected members answered neither this node nor a helper, or another node suspects
	// them. They become Dead unless they are heard in time.
	Suspected
	// Dead members did not refute a suspicion in time. A first member that was never
	// heard is also Dead, with the boot id 0.
	Dead
	// Left members ended on purpose, or were removed by an operator.
	Left
)

var stateNames = [...]string{"alive", "probe-failed", "suspected", "dead", "left"}

// String returns the name of a state, as topoctl prints it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Member is a node of a cluster, as another node or the node itself knows it.
type Member struct {
	Name    string
	Address string // where its transport listens
	Meta    []byte // what the node says about itself; must not be changed

	// Boot identifies the process: a later process with the same name has a higher boot
	// id. It is 0 for a first member that was never heard.
	Boot uint64
	// Incarnation rises each time the process refutes a suspicion about itself.
	Incarnation uint64

	State   State
	Changed time.Duration // when State last changed, since the start of the detector
}

// Leader returns the lowest name among the alive members (document, section 4), or "" if
// there is none. Names are compared byte by byte, so n10 is lower than n2.
//
// The result is only a hint. Two nodes can compute different leaders while news spreads,
// and the two sides of a partition do so until one of them is fenced. Use it to choose
// one node for work that several nodes may also do without harm. Decisions that must be
// made once need a majority, as runtime/raft has.
func Leader(members []Member) string {
	leader := ""
	for i := range members {
		m := &members[i]
		if m.State == Alive && m.Boot > 0 && (leader == "" || m.Name < leader) {
			leader = m.Name
		}
	}
	return leader
}
