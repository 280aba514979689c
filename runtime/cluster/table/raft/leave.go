package raft

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/topogen/topogen/runtime/raft"
)

// A node that has left the table also leaves the group: the leader removes it, so that it does
// not take the place of a node that joins. A removed id never comes back. So the node removes its
// log at its end, and its next process joins as a new node. If it was killed before that, the group
// tells the next process that it had left.

// folder is where the log of this node is.
func (t *Table) folder() string {
	return filepath.Join(t.config.Dir, defaultGroup, t.config.Node)
}

// removeLog removes the log of this node. The machine must have ended. If it fails, the next
// process finds a log of a node that was removed.
func (t *Table) removeLog() {
	if t.config.Disk != nil {
		return
	}
	if err := os.RemoveAll(t.folder()); err != nil {
		t.config.Logger.Warn("table: the log of this node, which has left, could not be removed", slog.String("node", t.config.Node), slog.Any("error", err))
	}
}

// rejoin replaces the machine of a process whose node had left, so that it joins as a new node.
func (t *Table) rejoin(m *machine) error {
	if m.Status().Role == "joining" {
		return nil // it does already, and the answer is late
	}
	if err := m.Close(); err != nil && !errors.Is(err, raft.ErrRemoved) {
		return err
	}
	t.removeLog()
	t.config.Logger.Info("table: this node had left the cluster and asks to join as a new node", slog.String("node", t.config.Node))
	return t.startAgain()
}

// Group implements table.Grouped.
func (t *Table) Group() (names []string) {
	m, _ := t.current()
	for _, s := range m.Status().Members {
		names = append(names, s.Name)
	}
	return names
}

// startAgain replaces the machine, which has ended.
func (t *Table) startAgain() error {
	m, err := t.start()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine = m
	close(t.changed)
	t.changed = make(chan struct{})
	return nil
}
