// Package groups has processors in restart groups.
package groups

import (
	"errors"
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

// Command says whether an instance fails.
type Command struct {
	Instance int
	Fail     bool
}

var ErrTold = errors.New("told to fail")

// Journal records starts, ends and failures of the instances.
type Journal struct {
	mu   sync.Mutex
	List []string
}

var Record Journal

func (j *Journal) note(what string, in topo.Instance) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.List = append(j.List, fmt.Sprintf("%s %s/%d", what, in.Processor, in.Index))
}

// Member is an instance of any processor.
type Member struct{ in topo.Instance }

func NewMember(in topo.Instance) *Member { return &Member{in} }

func (m *Member) Init() error {
	Record.note("start", m.in)
	return nil
}

func (m *Member) Close() error {
	Record.note("stop", m.in)
	return nil
}

func (m *Member) ReceiveCommand(c Command) error {
	if c.Fail {
		return ErrTold
	}
	Record.note("works", m.in)
	return nil
}
