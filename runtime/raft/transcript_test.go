package raft_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/internal/test/script"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// TestTranscripts runs the scripts in testdata/transcripts. Their output shows what nodes send, save
// and apply; read them to see how a group works. "go test -update" writes the output.
func TestTranscripts(t *testing.T) {
	script.Run(t, "testdata/transcripts/*.txt", func(t *testing.T) func([]string) ([]string, error) {
		return newTranscript(t).line
	})
}

// transcript runs the commands of a transcript on a group. The commands are
//
//	fresh NAME...            create and start the first members
//	nodes NAME...            create and start the first members, and found the group, without output
//	group NAME...            the same as nodes, and the first node becomes the leader
//	spare NAME...            create nodes that are not members, and do not start them
//	forget-flag NAME         start the node later without Join
//	start|crash|wipe NAME    a crash loses unsynced data, wipe loses all data of the disk
//	stray NAME               replace the node by a node of another group
//	campaign NAME            start an election
//	tick NAME [N]            advance the clock of the node by N heartbeats
//	step [N]                 deliver and handle the messages on the network, N times
//	settle                   step until the network is empty
//	quiet COMMAND...         run a command without output
//	propose NAME NUMBER      propose an update
//	read|lease-read NAME     read, with a question to the majority or by the lease
//	change NAME add-learner|add-voter|promote|remove NAME ...
//	transfer NAME NAME       transfer the leadership
//	snapshot NAME            take a snapshot
//	cut|mend NAME NAME       lose the messages from the first node to the second, or stop losing them
//	isolate NAME, heal       cut a node off, end all cuts
//	status                   print the status of all nodes
type transcript struct {
	t      *testing.T
	w      *world
	peers  map[string]string // the first members
	lines  []string
	silent bool
}

func newTranscript(t *testing.T) *transcript {
	cryptotest.SetGlobalRandom(t, 1)
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(1, 1)), noFaults: true, sessions: 10,
		leaders: map[rule]uint64{}, log: map[uint64]entry{}, counts: map[string]int{},
	}
	w.net = transport.NewNetwork[[]byte](rand.New(rand.NewPCG(1, 2)), transport.Faults{DelayMin: 1, DelayMax: 1})
	c := &transcript{t: t, w: w, peers: map[string]string{}}
	w.event = c.print
	t.Cleanup(w.end)
	return c
}

func (c *transcript) print(format string, args ...any) {
	if !c.silent {
		c.lines = append(c.lines, fmt.Sprintf(format, args...))
	}
}

func (c *transcript) line(words []string) (lines []string, err error) {
	c.lines, c.silent = nil, false
	if words[0] == "quiet" {
		c.silent, words = true, words[1:]
	}
	err = c.do(words[0], words[1:])
	if err == nil {
		err = c.w.failure
	}
	return c.lines, err
}

func (c *transcript) do(verb string, words []string) error {
	switch verb {
	case "fresh", "spare":
		c.nodes(words, verb == "fresh")
		return nil
	case "nodes":
		c.silent = true
		c.nodes(words, true)
		c.settle()
		return nil
	case "group":
		c.group(words)
		return nil
	case "step":
		c.step(number(words, 0, 1))
		return nil
	case "settle":
		c.settle()
		return nil
	case "heal":
		c.w.net.Heal()
		return nil
	case "status":
		c.status()
		return nil
	}
	n := c.node(words[0])
	if n == nil {
		return fmt.Errorf("no node %q", words[0])
	}
	switch verb {
	case "start":
		n.start()
		return nil
	case "forget-flag":
		n.joins = false
		return nil
	case "isolate":
		c.w.net.Isolate(n.number)
		return nil
	case "cut", "mend":
		c.w.net.Cut(n.number, c.node(words[1]).number, verb == "cut")
		return nil
	}
	if n.raft == nil {
		return fmt.Errorf("%s is not running", n.name)
	}
	return c.ask(n, verb, words[1:])
}

// ask runs a command that needs a running node.
func (c *transcript) ask(n *node, verb string, words []string) error {
	answer := func(what string) raft.Waiter { return &outcomePrinter{c, n.name + "'s " + what} }
	do := func(what string, call func(*raft.Core) error) {
		n.raft.Do(func(core *raft.Core) {
			if err := call(core); err != nil {
				c.print("%s's %s: %v", n.name, what, err)
			}
		})
	}
	switch verb {
	case "crash", "wipe":
		n.crash(verb)
		n.restart = 0
		if verb == "wipe" {
			n.disk = newMemoryDisk(uint64(100 + n.number))
			n.identify()
		}
	case "stray":
		n.crash(verb)
		n.restart, n.disk, n.peers = 0, newMemoryDisk(7), map[string]string{n.name: ""}
		n.identify()
		n.start()
		for range 3 * electionTime / tickTime { // the peers of the node do not contain the other nodes
			n.ticks = true
			n.run()
		}
	case "campaign":
		do(verb, (*raft.Core).Campaign)
	case "tick":
		for range number(words, 0, 1) {
			n.ticks = true
			n.run()
		}
	case "propose":
		v := number(words, 0, 0)
		data, _ := appendCodec.Append(nil, &appendTo{0, uint64(v), -1})
		n.raft.PutProposal(raft.Update, data, answer(fmt.Sprintf("proposal of %d", v)))
	case "read", "lease-read":
		n.raft.PutRead(answer(verb), verb == "lease-read")
	case "change":
		list, err := changes(words)
		if err != nil {
			return err
		}
		n.changeMembers(list, answer("change"))
	case "transfer":
		do(verb, func(core *raft.Core) error { return core.TransferLeader(c.node(words[0]).id) })
	case "snapshot":
		n.raft.TrySnapshot()
	default:
		return fmt.Errorf("no line begins with %q", verb)
	}
	c.run(n)
	return nil
}

func changes(words []string) (list []raft.Change, err error) {
	kinds := map[string]raft.ChangeKind{"add-learner": raft.AddLearner, "add-voter": raft.AddVoter, "promote": raft.Promote, "remove": raft.Remove}
	for pair := range slices.Chunk(words, 2) {
		kind, ok := kinds[pair[0]]
		if !ok {
			return nil, fmt.Errorf("no change %q", pair[0])
		}
		list = append(list, raft.Change{Kind: kind, Name: pair[1]})
	}
	return list, nil
}

// outcomePrinter prints an answer.
type outcomePrinter struct {
	c    *transcript
	what string
}

func (a *outcomePrinter) Done(r fsm.Applied) {
	switch {
	case r.Err != nil:
		a.c.print("%s: %v", a.what, r.Err)
	case r.Index > 0:
		a.c.print("%s: done, entry %d", a.what, r.Index)
	default:
		a.c.print("%s: done", a.what)
	}
}

func number(words []string, i, otherwise int) int {
	if i < len(words) {
		if v, err := strconv.Atoi(words[i]); err == nil {
			return v
		}
	}
	return otherwise
}

func (c *transcript) node(name string) *node {
	for _, n := range c.w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (c *transcript) nodes(names []string, first bool) {
	for _, name := range names {
		n := &node{w: c.w, name: name, number: len(c.w.nodes), disk: newMemoryDisk(uint64(len(c.w.nodes))), member: true, joins: !first, peers: c.peers}
		c.w.nodes = append(c.w.nodes, n)
		n.identify()
		if first {
			c.peers[name] = ""
		} else {
			n.peers = maps.Clone(c.peers)
			n.peers[name] = ""
		}
	}
	if !first {
		return
	}
	for _, n := range c.w.nodes {
		if n.raft == nil {
			n.start()
		}
	}
}

// identify gives a disk an id, so that transcripts do not contain random ids.
func (n *node) identify() {
	n.disk.record = raft.Record{Topology: simID.Topology, Group: simID.Group, Name: n.name, ID: uint64(n.number + 1)}
	for _, o := range n.w.nodes {
		if n.starts > 0 || o != n && o.disk.record.ID == n.disk.record.ID {
			n.disk.record.ID = 100 + uint64(n.number)
		}
	}
}

// group creates a group whose leader is the first node.
func (c *transcript) group(names []string) {
	c.silent = true
	c.nodes(names, true)
	c.settle()
	for _, n := range c.w.nodes {
		for range electionTime / tickTime { // after a start, a node does not vote for one election timeout
			n.ticks = true
			n.run()
		}
	}
	c.settle()
	c.w.nodes[0].raft.Do(func(core *raft.Core) { _ = core.Campaign() })
	c.run(c.w.nodes[0])
	c.settle()
}

// run runs a node. A node that stops is not restarted.
func (c *transcript) run(n *node) {
	if n.raft == nil {
		return
	}
	n.run()
	n.restart = 0
}

// step delivers the messages on the network and lets the nodes handle them.
func (c *transcript) step(times int) {
	for range times {
		c.w.now++
		c.w.deliver()
		for _, n := range c.w.nodes {
			c.run(n)
		}
	}
}

func (c *transcript) settle() {
	for {
		c.step(1)
		if _, more := c.w.net.Next(); !more {
			return
		}
	}
}

func (c *transcript) status() {
	for _, n := range c.w.nodes {
		if n.raft == nil {
			c.print("%s is down", n.name)
			continue
		}
		s := n.core.Status()
		var items []uint64
		n.machine.View(func(l *lists) { items = l.items[0] })
		leader := "no leader"
		if s.Leader != "" {
			leader = s.Leader + " leads"
		}
		c.print("%s %s in term %d, %s; log %d..%d, committed %d, snapshot %d; holds %v", n.name, s.Role, s.Term, leader, s.First, s.Last, s.Commit, s.Snapshot, items)
	}
}

func (w *world) logEvent(format string, args ...any) {
	if w.event != nil {
		w.event(format, args...)
	}
}

func (w *world) nameOf(id uint64) string {
	for _, n := range w.nodes {
		if n.id == id {
			return n.name
		}
	}
	return fmt.Sprintf("%x", id)
}

func (w *world) logMessage(from, to string, payload []byte) {
	if w.event == nil {
		return
	}
	body, of, err := raft.Payload(payload)
	if err == nil && !of {
		w.event("%s->%s %s", from, to, raft.Describe(payload))
		return
	}
	m := new(pb.Message)
	if err := errors.Join(err, proto.Unmarshal(body, m)); err != nil {
		w.fail("a message: %v", err)
		return
	}
	line := fmt.Sprintf("%s->%s %s term %d", from, to, strings.TrimPrefix(m.GetType().String(), "Msg"), m.GetTerm())
	switch m.GetType() {
	case pb.MsgApp, pb.MsgVote, pb.MsgPreVote:
		line += fmt.Sprintf(", behind %d/%d", m.GetLogTerm(), m.GetIndex())
	case pb.MsgAppResp, pb.MsgReadIndexResp:
		line += fmt.Sprintf(", index %d", m.GetIndex())
	case pb.MsgSnap:
		line += fmt.Sprintf(", snapshot %d", m.GetSnapshot().GetMetadata().GetIndex())
	}
	if n := len(m.Entries); n > 0 && m.GetType() == pb.MsgApp {
		line += fmt.Sprintf(", entries %d..%d", m.Entries[0].GetIndex(), m.Entries[n-1].GetIndex())
	}
	if m.GetType() == pb.MsgApp || m.GetType() == pb.MsgHeartbeat {
		line += fmt.Sprintf(", committed %d", m.GetCommit())
	}
	if m.GetReject() {
		line += ", refused"
		if m.GetType() == pb.MsgAppResp {
			line += fmt.Sprintf(", try behind %d/%d", m.GetLogTerm(), m.GetRejectHint())
		}
	}
	w.event("%s", line)
}

func (w *world) logSave(n *node, s *pb.HardState, e []*pb.Entry, sync bool) {
	if w.event == nil {
		return
	}
	var parts []string
	if s != nil {
		vote := "nobody"
		if s.GetVote() != 0 {
			vote = w.nameOf(s.GetVote())
		}
		parts = append(parts, fmt.Sprintf("term %d, vote for %s, committed %d", s.GetTerm(), vote, s.GetCommit()))
	}
	if len(e) > 0 {
		parts = append(parts, fmt.Sprintf("entries %d..%d", e[0].GetIndex(), e[len(e)-1].GetIndex()))
	}
	how := "saves"
	if sync {
		how = "saves and syncs"
	}
	w.event("%s %s %s", n.name, how, strings.Join(parts, "; "))
}

func (w *world) logEnd(n *node, err error) {
	if !errors.Is(err, errCrashed) {
		w.logEvent("%s stops: %v", n.name, err)
	}
}
