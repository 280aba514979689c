package supervise

import (
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// state is the state of a child.
type state uint8

const (
	running    state = iota
	stopping         // EffectStop is in progress
	waiting          // down until its delay has passed
	down             // will be started, now or when it is next in its group
	starting         // EffectStart is in progress
	done             // ended cleanly, but may still handle messages and fail; the restart of another child may start it again
	terminated       // down, and never started again
)

// alive reports whether a child in this state can fail, and can be stopped.
func (s state) alive() bool { return s == running || s == starting || s == done }

// child is the state of an instance.
type child struct {
	*Processor
	id         piper.Child
	group      *group // nil if it is in no group
	position   int    // in the group
	state      state
	cause      error // why it is down; nil if it ended cleanly or was stopped
	inputsDone bool
	draining   bool // it ended cleanly and got no order since: it still handles messages, and may fail

	count int           // restarts in the window
	since time.Duration // time of the first of them
}

// supervised reports whether a failure of the child does not end the topology.
func (c *child) supervised() bool {
	return c.group != nil || c.Supervised && c.Policy != Never
}

// temporary reports whether the child is never started again, not even with its group.
func (c *child) temporary() bool { return c.Policy == Never }

// restarts reports whether the policy restarts the child after an end with c.cause.
func (c *child) restarts() bool {
	return c.supervised() && (c.Policy == Always || c.Policy == OnFailure && c.cause != nil)
}
