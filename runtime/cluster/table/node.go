package table

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
)

// Node is a node as the table describes it.
type Node struct {
	Name    string   // unique in the cluster
	Address string   // host:port
	Roles   []string // sorted, each once
	Boot    Boot     // of the process that runs under the name; 0: no process has joined yet
	Plan    string   // hash of the plan of the process's topology; "" if Boot is 0
	State   NodeState
	Epoch   uint64 // of the transaction in which the process has joined; the table sets it, 0 if Boot is 0
}

// Boot identifies one start of a process. It is random and never 0.
type Boot uint64

// NewBoot returns a boot id for this start of the process.
func NewBoot() Boot {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return Boot(max(1, binary.BigEndian.Uint64(b[:])))
}

// String formats the id as 16 hexadecimal digits.
func (b Boot) String() string { return fmt.Sprintf("%016x", uint64(b)) }

// NodeState is how far a node is in joining or leaving the cluster. It says nothing about
// failures: a member that has crashed is a member until an operator or the recovery
// removes it.
type NodeState uint8

// The states of a node, in their order. A node that was forgotten is not in the table;
// only events contain this state.
const (
	Joining   NodeState = iota // expected, or receiving the table: it may get containers, but does not run them yet
	Member                     // has the table and runs its containers
	Leaving                    // gets no more containers
	Left                       // has left and has no containers
	Forgotten                  // removed from the table
)

var stateNames = []string{"joining", "member", "leaving", "left", "forgotten"}

// String returns the name of the state.
func (s NodeState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// places reports whether a node in this state may get containers.
func (s NodeState) places() bool { return s == Joining || s == Member }

// check returns an error if a field is invalid.
func (n *Node) check() error {
	if err := checkName("node", n.Name); err != nil {
		return err
	}
	switch {
	case len(n.Address) > NameBytesMax:
		return fmt.Errorf("%w: the address of node %q must have at most %d bytes, got %d", ErrInvalid, n.Name, NameBytesMax, len(n.Address))
	case len(n.Roles) > RolesMax:
		return fmt.Errorf("%w: node %q must have at most %d roles, got %d", ErrInvalid, n.Name, RolesMax, len(n.Roles))
	case len(n.Plan) > PlanBytesMax:
		return fmt.Errorf("%w: the plan of node %q must have at most %d bytes, got %d", ErrInvalid, n.Name, PlanBytesMax, len(n.Plan))
	case n.State > Left:
		return fmt.Errorf("%w: node %q has the %v", ErrInvalid, n.Name, n.State)
	}
	bytes := 0
	for i, role := range n.Roles {
		if bytes += len(role); bytes > RolesBytesMax {
			return fmt.Errorf("%w: the roles of node %q must have at most %d bytes together", ErrInvalid, n.Name, RolesBytesMax)
		}
		if err := checkName("role", role); err != nil {
			return err
		}
		if i > 0 && n.Roles[i-1] >= role {
			return fmt.Errorf("%w: the roles of node %q must be sorted and different, got %q", ErrInvalid, n.Name, n.Roles)
		}
	}
	return nil
}

// checkName returns an error if a name is empty or too long.
func checkName(what, name string) error {
	if name == "" || len(name) > NameBytesMax {
		return fmt.Errorf("%w: the name of a %s must have 1 to %d bytes, got %d", ErrInvalid, what, NameBytesMax, len(name))
	}
	return nil
}

// epochOf is the epoch of a container on the node. It was placed with an epoch, and each process that joins runs
// all containers of its node with a new one. n may be nil.
func (n *Node) epochOf(placed uint64) uint64 {
	if n == nil {
		return placed
	}
	return max(placed, n.Epoch)
}

// clone returns a copy that shares nothing with n.
func (n *Node) clone() Node {
	c := *n
	c.Roles = slices.Clone(n.Roles)
	return c
}
