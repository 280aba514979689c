package raft

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Neighbor returns the configuration of another group on the nodes of this one: with the
// same name of the node, the same addresses, certificates and times. The name of the group
// and the path of its folder are those of this one with -SUFFIX. If this state machine has
// several instances, they have one neighbor.
func (m *Machine[S, U, R]) Neighbor(suffix string) (Config, error) {
	c := m.config
	switch {
	case c.Carried:
		return Config{}, fmt.Errorf("raft: group %q has no connections for a neighbor: its controller carries its messages", c.Group)
	case c.Disk != nil:
		return Config{}, errors.New("raft: a neighbor needs a folder, and Config.Disk is set")
	}
	group, _, _ := instanceOf(c.Group)
	c.Group = group + "-" + suffix
	if c.Dir != "" {
		c.Dir = filepath.Clean(c.Dir) + "-" + suffix
	}
	c.Instance, c.Instances = 0, 0
	c.Listener, c.Called, c.sessions = nil, nil, 0
	return c, nil
}

// Neighbor returns the configuration of another group on the same nodes, see
// [Machine.Neighbor].
func (p *Processor) Neighbor(suffix string) (Config, error) { return p.machine.Neighbor(suffix) }
