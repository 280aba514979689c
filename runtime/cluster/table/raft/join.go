package raft

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// waitTimeouts is how many election timeouts a node repeats its request while the leader
// answers that another process uses its name. The leader needs up to two of them to see
// that a process has stopped.
const waitTimeouts = 10

// receive handles messages of other nodes about members. It never waits: a message that
// does not fit is dropped, and its sender repeats it.
func (t *Table) receive(from string, payloads [][]byte) {
	for _, b := range payloads {
		m, err := readMessage(b)
		if err != nil {
			t.config.Logger.Warn("table: a damaged message about members was ignored", slog.String("sender", from))
		}
		switch m := m.(type) {
		case request:
			select {
			case t.requests <- incoming{from, m}:
			default:
			}
		case answer:
			select {
			case t.answers <- m:
			default:
			}
		case []table.Renewal:
			for _, w := range m {
				t.takeRenewal(w)
			}
		}
	}
}

// leaderlessTimeouts is how many election timeouts a member hears of no leader before it asks
// whether it is still a member. An election takes one or two.
const leaderlessTimeouts = 5

// seek asks the first nodes to admit this node, until it is a member of the group. A first
// node also asks, because its disk may have been emptied. A member asks whether it is still
// one if it hears of no leader: the group may have removed it while it was away, and then does
// not answer to a node without a vote.
func (t *Table) seek(ctx context.Context) {
	number := randomNumber()
	every := max(t.config.Heartbeat, t.config.ElectionTimeout/4)
	tick := time.NewTimer(every)
	defer tick.Stop()
	var waiting waiting
	var leaderless time.Time // since when this node is a member and knows no leader
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-t.answers:
			if a.number != number {
				continue
			}
			if err := t.takeAnswer(a, &waiting); err != nil {
				go t.finish(err)
				return
			}
		case <-tick.C:
			m, _ := t.current()
			if _, ok := m.Leader(); ok { // unlike Status, it does not wake the loop of the machine
				leaderless, waiting.worked = time.Time{}, true
				tick.Reset(t.config.ElectionTimeout)
				continue
			}
			tick.Reset(every)
			s := m.Status()
			r := request{number: number, id: s.ID, address: t.config.Address, plan: t.config.Plan}
			switch {
			case s.Role == "stopped": // the machine is started again, or the table ends
				continue
			case s.Role == "founding" || s.Role == "joining":
			case s.Leader != "": // since the look above
				continue
			case leaderless.IsZero():
				leaderless = time.Now()
				continue
			case time.Since(leaderless) < leaderlessTimeouts*t.config.ElectionTimeout:
				continue
			default:
				r.known = max(1, s.Commit)
			}
			for _, name := range t.config.others() {
				t.send(name, appendRequest(nil, r))
			}
		}
	}
}

// waiting is how long the answers have been that this node must wait.
type waiting struct {
	since, last time.Time
	worked      bool // this process was a member that knew a leader
}

// takeAnswer handles an answer. The error ends the table.
func (t *Table) takeAnswer(a answer, w *waiting) error {
	switch a.code {
	case answerAdmitted:
		*w = waiting{}
		return nil
	case answerLeft:
		if m, _ := t.current(); !w.worked { // otherwise another process has left under the name
			return t.rejoin(m)
		}
		return t.removed(nil)
	case answerRemoved:
		return t.removed(nil)
	case answerPlan:
		return &table.PlanError{Node: table.Plan{Hash: t.config.Plan}, Cluster: a.plan}
	case answerWait:
		now := time.Now()
		if now.Sub(w.last) > t.config.ElectionTimeout*waitTimeouts/2 { // there was no leader in between
			w.since = now
		}
		w.last = now
		if now.Sub(w.since) < waitTimeouts*t.config.ElectionTimeout {
			return nil
		}
	}
	return fmt.Errorf("%w: %s", table.ErrRefused, a.text)
}

func (t *Table) send(to string, b []byte) {
	t.config.Transport.Send(to, transport.Message{Group: t.control, Payload: b, Class: transport.Urgent})
}

func randomNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

// lead does the work of the leader: it admits nodes, and changes the voters. On other
// nodes it does nothing.
func (t *Table) lead(ctx context.Context) {
	rules := newMembers(&t.config)
	tick := time.NewTicker(t.config.ElectionTimeout)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-t.requests:
			if m, s, leads := t.leads(); leads {
				t.admit(ctx, m, r, s)
			}
		case <-tick.C:
			m, s, leads := t.leads()
			if !leads {
				rules = newMembers(&t.config) // another leader begins to count
				continue
			}
			if changes := rules.decide(observation{now: time.Now(), members: s.Members, gone: t.gone, left: t.left}); changes != nil {
				t.change(ctx, m, changes)
			}
		}
	}
}

func (t *Table) leads() (*machine, raft.Status, bool) {
	m, _ := t.current()
	if leader, _ := m.Leader(); leader != t.config.Node { // unlike Status, it does not wake the loop of the machine
		return m, raft.Status{}, false
	}
	s := m.Status()
	return m, s, s.Role == "leader"
}

// gone reports whether a node will not come back: its operator says so, or the table has a
// plan, and the node has left or is not in the table.
func (t *Table) gone(name string) bool { return t.config.Gone(name) || t.replica.Gone(name) }

// left reports whether a node has said itself that it leaves.
func (t *Table) left(name string) bool {
	n := t.replica.Node(name)
	return n != nil && n.State == table.Left
}

// admit handles the request of a node. If the members cannot be changed now, the node gets
// no answer: it asks again, and is not refused because a disk or the majority is slow.
func (t *Table) admit(ctx context.Context, m *machine, r incoming, s raft.Status) {
	a := admit(r, t.replica.FullPlan(), s.Applied, s.Members, t.gone, t.left(r.from))
	for _, changes := range a.changes {
		if err := t.change(ctx, m, changes); err != nil {
			return
		}
	}
	t.config.Transport.SetPeer(r.from, r.address) // for the answer
	t.send(r.from, appendAnswer(nil, a.answer))
}

// changeTimeouts is how many election timeouts a change of the members may take.
const changeTimeouts = 5

// change changes the members. If it fails, the next request or tick tries again.
func (t *Table) change(ctx context.Context, m *machine, changes []raft.Change) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeouts*t.config.ElectionTimeout)
	defer cancel()
	err := m.ChangeMembers(ctx, changes...)
	node, texts := slog.String("node", t.config.Node), slog.Any("changes", changeTexts(changes))
	switch {
	case err == nil:
		t.config.Logger.Info("table: the members of the table were changed", node, texts)
	case !errors.Is(err, context.Canceled) && t.warned.due(err, time.Now()):
		t.config.Logger.Warn("table: the members of the table could not be changed", node, texts, slog.Any("error", err))
	}
	return err
}

// warned is the last error that was logged. A node asks several times a second, so the same
// error is logged once a minute.
type warned struct {
	text string
	at   time.Time
}

func (w *warned) due(err error, now time.Time) bool {
	text := err.Error()
	if text == w.text && now.Sub(w.at) < time.Minute {
		return false
	}
	w.text, w.at = text, now
	return true
}

func changeTexts(changes []raft.Change) (texts []string) {
	for _, c := range changes {
		texts = append(texts, map[raft.ChangeKind]string{raft.AddLearner: "add learner ", raft.Promote: "promote ", raft.Remove: "remove "}[c.Kind]+c.Name)
	}
	return texts
}
