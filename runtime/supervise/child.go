package supervise

import (
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// state is that of a child.
type state uint8

const (
	running    state = iota
	stopping         // EffectStop is under way
	waiting          // it is down until its delay has passed
	down             // it is to be started, at once or when its group comes to it
	starting         // EffectStart is under way
	done             // it sends no more of itself, but may handle what comes, and so fail; another's restart may start it again
	terminated       // it is down for good
)

// alive reports whether a child can fail by itself, and be stopped.
func (s state) alive() bool { return s == running || s == starting || s == done }

// child is an instance.
type child struct {
	*Processor
	id         piper.Child
	group      *group // nil: in none
	position   int    // in the group
	state      state
	cause      error // why it is down; nil where it ended cleanly or was to stop
	inputsDone bool
	draining   bool // it has ended cleanly and was told nothing since: it handles what comes, and may fail

	count int           // restarts in the window
	since time.Duration // its first
}

// supervised reports whether the topology outlives a failure of the child.
func (c *child) supervised() bool {
	return c.group != nil || c.Supervised && c.Policy != Never
}

// temporary reports whether it is never started again, whoever fails.
func (c *child) temporary() bool { return c.Policy == Never }

// restarts reports whether the policy is to restart it after what it ended by.
func (c *child) restarts() bool {
	return c.supervised() && (c.Policy == Always || c.Policy == OnFailure && c.cause != nil)
}
