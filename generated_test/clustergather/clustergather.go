// Package clustergather has calls that several instances answer.
package clustergather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/topogen/topogen/runtime/topo"
)

type (
	// Count asks each instance.
	Count struct {
		N     int
		Fails string // the instance whose handler fails
		Text  []byte
	}
	// Some asks some instances.
	Some struct{ N int }
	// Wait asks instances that do not answer in time.
	Wait struct {
		N    int
		Node string // the node whose instance does not answer
	}
	// Total is the reply of one or more instances.
	Total struct {
		By  []string
		Sum int
	}
)

// Clone copies the text.
func (m Count) Clone() Count {
	m.Text = bytes.Clone(m.Text)
	return m
}

// Aggregate joins two replies, in their order.
func (t *Total) Aggregate(other Total) Total {
	return Total{slices.Concat(t.By, other.By), t.Sum + other.Sum}
}

// ErrCounter is the error of a handler.
var ErrCounter = errors.New("the handler fails")

// Counting answers calls.
type Counting struct {
	Name    string
	Handled int
}

func (c *Counting) count(m *Count) (Total, error) {
	c.Handled++
	if string(m.Text) != "text" {
		return Total{}, fmt.Errorf("the text is %s", m.Text)
	}
	m.Text[0]++ // the other instances must not see this
	if m.Fails == c.Name {
		return Total{}, ErrCounter
	}
	return Total{[]string{c.Name}, m.N}, nil
}

// Counter answers.
type Counter struct{ Counting }

// ReceiveCount answers.
func (c *Counter) ReceiveCount(m *Count) (Total, error) { return c.count(m) }

// ReceiveSome answers.
func (c *Counter) ReceiveSome(m Some) Total { return Total{[]string{c.Name}, m.N} }

// Probe answers on each node.
type Probe struct{ Counting }

// ReceiveCount answers.
func (p *Probe) ReceiveCount(m Count) (Total, error) { return p.count(&m) }

// Tight has short queues.
type Tight struct{ Counting }

// ReceiveCount answers.
func (t *Tight) ReceiveCount(m Count) (Total, error) { return t.count(&m) }

// Wide has short queues on each node.
type Wide struct {
	Counting
	Node    string
	Release chan struct{}
}

// ReceiveCount answers.
func (w *Wide) ReceiveCount(m *Count) Total {
	w.Handled++
	return Total{[]string{w.Name}, m.N}
}

// ReceiveWait answers at once, or not before Release is closed.
func (w *Wide) ReceiveWait(ctx context.Context, m Wait) (Total, error) {
	if m.Node != w.Node {
		return Total{[]string{w.Name}, m.N}, nil
	}
	select {
	case <-w.Release:
		return Total{[]string{w.Name}, m.N}, nil
	case <-ctx.Done():
		return Total{}, topo.ErrStopping
	}
}
