package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/piper/border"
)

// processFile is a file in the folder of a node. It holds the boot id of the process that runs.
// A process removes it before Run returns. So the next process knows whether the one before
// was killed.
const processFile = "process"

// knewEnd is the second line of the file of a process that knows that the topology has finished.
const knewEnd = "finished\n"

// lastRun is what a process knows about the one before it.
type lastRun struct {
	node   string
	killed table.Boot // the process before was killed; 0: it has ended, or there was none
	knew   bool       // the process before knew that the topology has finished
	groups []bool     // by group: it finishes

	patience time.Duration // if knew: how long the address table is awaited
	alone    bool          // orFinished has not reached the address table
}

// newLastRun reads the file of the process before. A damaged file counts as none: the process
// then waits for the others, which a killed process need not.
func (n *Node) newLastRun(p *border.Border) *lastRun {
	l := &lastRun{node: n.settings.node, patience: n.settings.Retry.Timeout}
	l.killed, l.knew = n.notedProcess()
	for i := range p.Groups() {
		l.groups = append(l.groups, !p.Group(i).Empty)
	}
	return l
}

// finished reports whether the topology has finished in the run of a process that was killed
// before Run returned. Nothing is left to do then. If all other nodes have newer processes,
// they have begun the next run, and wait for this node.
func (l *lastRun) finished(r *table.Replica) bool {
	end := r.End()
	if !end.Holds(l.node, l.killed) {
		return false
	}
	for i, finishes := range l.groups {
		if finishes && end.Phase(i) < piper.GroupFlushing {
			return false
		}
	}
	others, newer := 0, 0
	for _, n := range r.Nodes() {
		if n.Name == l.node || n.State == table.Left {
			continue
		}
		if others++; !end.Holds(n.Name, n.Boot) {
			newer++
		}
	}
	return others == 0 || newer < others
}

// orFinished calls join with a context that ends when the replica says that the topology has
// finished. The replica may know it from its disk, and then no other node need run. But a log of raft does not
// say what was committed, and without a majority nobody can. So the file of the process says whether it knew the end.
// Then the context also ends after some time: the other nodes have ended.
func (l *lastRun) orFinished(ctx context.Context, r *table.Replica, join func(context.Context) error) error {
	if l.killed == 0 {
		return join(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	if l.knew {
		defer time.AfterFunc(l.patience, func() { cancel(piper.ErrFinished) }).Stop()
	}
	go func() {
		defer close(watching)
		if r.WaitFor(ctx, l.finished) == nil {
			cancel(nil)
		}
	}()
	err := join(ctx)
	l.alone = err != nil && context.Cause(ctx) == piper.ErrFinished
	cancel(nil)
	<-watching
	if l.alone || l.finished(r) {
		return piper.ErrFinished
	}
	return err
}

// notedProcess reads the file of a process; 0 if there is none. knew says that the process knew that the topology
// has finished.
func (n *Node) notedProcess() (boot table.Boot, knew bool) {
	b, err := os.ReadFile(filepath.Join(n.settings.Dir, processFile))
	if err != nil {
		return 0, false
	}
	line, rest, _ := strings.Cut(string(b), "\n")
	number, _ := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return table.Boot(number), rest == knewEnd
}

// noteEnd notes that this process knows that the topology has finished: its groups have, or go on to their end. If that fails, the next process waits for the
// address table, as after a crash before the end.
func (n *Node) noteEnd() {
	f, err := os.OpenFile(filepath.Join(n.settings.Dir, processFile), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(knewEnd)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		n.log.Warn("topogen: the file of this process cannot be written", slog.Any("error", err))
	}
}

// noteProcess writes the file of this process.
func (n *Node) noteProcess() error { return n.writeFile(processFile, n.boot.String()) }

// writeFile writes a file of one line into the folder of the node.
func (n *Node) writeFile(name, line string) error {
	path := filepath.Join(n.settings.Dir, name)
	f, err := os.CreateTemp(n.settings.Dir, name+"-*")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// forgetProcess removes the file of a process, unless it is that of a newer process.
func (n *Node) forgetProcess(boot table.Boot) {
	if noted, _ := n.notedProcess(); noted != boot {
		return
	}
	if err := os.Remove(filepath.Join(n.settings.Dir, processFile)); err != nil {
		n.log.Warn("topogen: the file of this process remains, so its node seems to have been killed", slog.Any("error", err))
	}
}
