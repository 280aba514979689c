package raft_test

import (
	"bytes"
	"hash/fnv"
	"io"

	"github.com/topogen/topogen/runtime/fsm"
)

// comparingMachine is a state machine that compares its applied entries with those of other nodes.
type comparingMachine struct {
	*fsm.Replicated[lists, appendTo, struct{}]
	n *node
}

func (m *comparingMachine) Apply(index, term uint64, data []byte, result func(client, sequence uint64, a fsm.Applied)) error {
	w := m.n.w
	if m.n.failing != nil {
		return m.n.failing
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	got := entry{term, h.Sum64()}
	if want, ok := w.log[index]; ok && want != got {
		w.fail("%s must apply the same entry %d as the other nodes", m.n.name, index)
	}
	w.log[index] = got
	if at := m.Applied(); index <= at {
		w.fail("%s must apply entries in order, got %d after %d", m.n.name, index, at)
	}
	w.newest = max(w.newest, index)
	w.trace = w.trace*31 + index
	w.logEvent("%s applies %d", m.n.name, index)
	return m.Replicated.Apply(index, term, data, result)
}

// Notes returns nothing in a transcript, to keep the transcript short.
func (m *comparingMachine) Notes(node, every uint64) (n fsm.Notes) {
	if m.n.w.event == nil {
		n = m.Replicated.Notes(node, every)
	}
	return n
}

// Description returns nothing in a transcript, to keep the transcript short.
func (m *comparingMachine) Description() (text string) {
	if m.n.w.event == nil {
		text = m.Replicated.Description()
	}
	return text
}

func (m *comparingMachine) Snapshot() (write func(io.Writer) error, frozen bool, err error) {
	m.n.w.count("snapshot")
	write, frozen, err = m.Replicated.Snapshot()
	if err != nil || m.n.w.event != nil || m.n.w.rng.IntN(2) == 0 {
		return write, frozen, err
	}
	m.n.w.count("frozen state")
	var b bytes.Buffer
	err = write(&b)
	return func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }, true, err
}

func (m *comparingMachine) Prepare(r io.Reader) (install func(), err error) {
	state, err := m.Replicated.Prepare(r)
	return func() {
		m.n.w.count("restore")
		m.n.w.logEvent("%s takes the state of a snapshot", m.n.name)
		state()
	}, err
}
