// Package clusternodes has messages to the node that they name, and replies to processors
// that are on every node.
package clusternodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/topogen/topogen/runtime/topo"
)

// NodeName is the name of a node.
type NodeName string

// Stamp says which instance has sent a message, and its number among those to the same
// receiver.
type Stamp struct {
	By string
	N  int
}

// Target is a pointer on the path to the name of a node.
type Target struct{ Node string }

type (
	// Find goes to a node.
	Find struct {
		Stamp
		Node NodeName
	}
	// News goes to all nodes.
	News struct {
		Stamp
		Text []byte
	}
	// Look asks a watcher on a node.
	Look struct {
		At *Target
		N  int
	}
	// May asks a watcher on a node, unless its queue is full.
	May struct {
		Node string
		N    int
	}
	// Seen is the reply.
	Seen struct {
		Node string
		N    int
	}
	// Hint may be dropped.
	Hint struct {
		Node string
		N    int
	}
	// Must fails if the queue is full.
	Must struct {
		Node string
		N    int
	}
	// Question asks for an answer.
	Question struct {
		ID, Node string
		N        int
	}
	// Answer is the reply to a Question.
	Answer struct {
		ID string
		N  int
	}
	// Order asks for a receipt.
	Order struct {
		ID string
		N  int
	}
	// Parcel asks for a receipt. Its receiver sends news.
	Parcel struct {
		ID   string
		Node NodeName
		N    int
	}
	// Signal has the result of the signal before it.
	Signal struct {
		Node NodeName
		Err  string
	}
	// Receipt is the reply to an Order or a Parcel.
	Receipt struct {
		ID    string
		N     int
		Token uint64 // of the box
	}
)

// Clone copies the text.
func (m News) Clone() News {
	m.Text = bytes.Clone(m.Text)
	return m
}

// Messages is how many rounds of messages each source sends.
const Messages = 120

// names are the nodes that messages name. One of them does not exist.
var names = [...]NodeName{"n1", "n2", "n3", "nowhere"}

// Source sends messages to nodes.
type Source struct {
	in      topo.Instance
	n       int
	Sent    map[NodeName]int // to each receiver
	Refused int
}

// NewSource makes a source.
func NewSource(in topo.Instance) *Source { return &Source{in: in, Sent: map[NodeName]int{}} }

// Ping sends a message to all nodes, and one to each processor on one node.
func (s *Source) Ping(out *SourceSender) error {
	if s.n == Messages {
		return topo.Done
	}
	by := fmt.Sprint("source", s.in.Index)
	s.n++
	m := Find{Stamp{by, 2 * s.n}, names[s.n%len(names)]}
	switch err := out.SendFindToProbe(m); {
	case errors.Is(err, topo.ErrNoInstance):
		s.Refused++
	case err != nil:
		return err
	default:
		s.Sent[m.Node]++
		if err := errors.Join(out.SendFindToWatcher(m), out.SendFindToCareful(m)); err != nil {
			return err
		}
	}
	return out.SendNews(News{Stamp{by, 2*s.n + 1}, []byte(by)})
}

// Log is what a receiver has received.
type Log struct {
	Node   string // its node; "" in one process
	Count  map[string]int
	Last   map[string]int // by sender
	Faults []string
}

func (l *Log) add(message string, m Stamp) {
	l.count(message + " of " + m.By)
	if last, ok := l.Last[m.By]; ok && m.N <= last {
		l.fault("%s %d of %s after %d", message, m.N, m.By, last)
	}
	l.Last[m.By] = m.N
}

func (l *Log) count(what string) {
	if l.Last == nil {
		l.Count, l.Last = map[string]int{}, map[string]int{}
	}
	l.Count[what]++
}

func (l *Log) fault(format string, args ...any) {
	l.Faults = append(l.Faults, fmt.Sprintf(format, args...))
}

// at checks that the message is on its node.
func (l *Log) at(node NodeName) {
	if l.Node != "" && string(node) != l.Node {
		l.fault("a message for %s", node)
	}
}

func (l *Log) find(m *Find) {
	l.add("Find", m.Stamp)
	l.at(m.Node)
}

func (l *Log) news(m *News) {
	l.add("News", m.Stamp)
	if string(m.Text) != m.By {
		l.fault("the text is %s", m.Text)
	}
	m.Text[0]++ // the others must not see this
}

// Questions is how many questions each instance asks.
const Questions = 60

// Probe receives messages and asks.
type Probe struct {
	Log
	ID    string
	n     int
	News  int
	Token uint64 // of a box
}

// Ping asks for an answer and two receipts.
func (p *Probe) Ping(out *ProbeSender) error {
	if p.n == Questions {
		return topo.Done
	}
	p.n++
	out.SendQuestion(Question{p.ID, p.Node, p.n})
	out.SendOrder(Order{p.ID, p.n})
	out.SendParcel(Parcel{p.ID, NodeName(p.Node), p.n})
	return nil
}

// ReceiveFind takes a message for its node.
func (p *Probe) ReceiveFind(m *Find) { p.find(m) }

// ReceiveNews takes a message for all nodes.
func (p *Probe) ReceiveNews(m *News) { p.News++; p.Log.news(m) }

// ReceiveAnswer takes the reply to its own question.
func (p *Probe) ReceiveAnswer(m Answer) { p.reply("Answer", m.ID, m.N) }

// ReceiveReceiptFromDesk takes the reply to its own order.
func (p *Probe) ReceiveReceiptFromDesk(m *Receipt) { p.reply("Receipt of desk", m.ID, m.N) }

// ReceiveReceiptFromBox takes the reply to its own parcel.
func (p *Probe) ReceiveReceiptFromBox(m Receipt) {
	p.reply("Receipt of box", m.ID, m.N)
	p.Token = m.Token
}

func (p *Probe) reply(what, id string, n int) {
	p.add(what, Stamp{what, n})
	if id != p.ID {
		p.fault("%s for %s", what, id)
	}
}

// Radio receives the messages of boxes and of the tower.
type Radio struct {
	Log
	Signals []Signal
}

// ReceiveSignal keeps the signal.
func (r *Radio) ReceiveSignal(m Signal) { r.Signals = append(r.Signals, m) }

// ReceiveFind takes a message for its node.
func (r *Radio) ReceiveFind(m *Find) { r.find(m) }

// ReceiveNews takes a message for all nodes.
func (r *Radio) ReceiveNews(m News) { r.news(&m) }

// Watcher answers.
type Watcher struct {
	Log
	Hints, Musts int
}

// ReceiveFind takes a message for its node.
func (w *Watcher) ReceiveFind(m Find) { w.find(&m) }

// ReceiveLook says where it is.
func (w *Watcher) ReceiveLook(m *Look) Seen { return Seen{w.Node, m.N} }

// ReceiveMay says where it is.
func (w *Watcher) ReceiveMay(m May) Seen { return Seen{w.Node, m.N} }

// ReceiveHint takes a message for its node.
func (w *Watcher) ReceiveHint(m Hint) {
	w.Hints++
	w.at(NodeName(m.Node))
}

// ReceiveMust takes a message for its node.
func (w *Watcher) ReceiveMust(m Must) {
	w.Musts++
	w.at(NodeName(m.Node))
}

// Careful handles each message twice.
type Careful struct {
	Log
	ID       string
	Token    uint64 // that its constructor got
	n        int
	attempts map[Stamp]int
}

// Ping asks.
func (c *Careful) Ping(out *CarefulSender) error {
	if c.n == Questions {
		return topo.Done
	}
	c.n++
	out.SendQuestion(Question{c.ID, c.Node, c.n})
	return nil
}

var errAgain = errors.New("the first attempt fails")

// ReceiveFind fails at the first attempt.
func (c *Careful) ReceiveFind(ctx context.Context, m *Find) error {
	if token := topo.FencingToken(ctx); token != c.Token {
		c.fault("the context has the token %d, and the constructor got %d", token, c.Token)
	}
	if c.attempts == nil {
		c.attempts = map[Stamp]int{}
	}
	if c.attempts[m.Stamp]++; c.attempts[m.Stamp] == 1 {
		return errAgain
	}
	c.find(m)
	return nil
}

// ReceiveAnswer takes the reply to its own question.
func (c *Careful) ReceiveAnswer(m Answer) {
	c.add("Answer", Stamp{"Answer", m.N})
	if m.ID != c.ID {
		c.fault("an answer for %s", m.ID)
	}
}

// Desk answers.
type Desk struct{}

// ReceiveQuestionFromProbe answers, and gives the node of the question a hint.
func (d *Desk) ReceiveQuestionFromProbe(m *Question, out *DeskSender) Answer {
	out.SendHint(Hint{m.Node, m.N})
	return Answer{m.ID, m.N}
}

// ReceiveQuestionFromCareful answers, and gives a node that does not exist a hint.
func (d *Desk) ReceiveQuestionFromCareful(m Question, out *DeskSender) (Answer, error) {
	out.SendHint(Hint{"nowhere", m.N})
	return Answer{m.ID, m.N}, nil
}

// ReceiveOrder gives a receipt.
func (d *Desk) ReceiveOrder(m Order) Receipt { return Receipt{ID: m.ID, N: m.N} }

// VariableHold names a folder. If it is set, each call of a box adds a line with its process to the file calls of the
// folder, waits until the file release exists, and adds the line again.
const VariableHold = "CLUSTERNODES_HOLD"

// hold does what VariableHold says.
func hold() {
	dir := os.Getenv(VariableHold)
	if dir == "" {
		return
	}
	calls, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer calls.Close()
	fmt.Fprintln(calls, os.Getpid())
	for err = fs.ErrNotExist; err != nil; _, err = os.Stat(filepath.Join(dir, "release")) {
		<-time.After(time.Millisecond)
	}
	fmt.Fprintln(calls, os.Getpid())
}

// Box runs in a process of its own.
type Box struct {
	By string
	in topo.Instance
	n  int
}

// NewBox makes a box.
func NewBox(in topo.Instance) *Box { return &Box{By: fmt.Sprint("box", in.Index), in: in} }

// ReceiveParcel gives a receipt, and sends messages to all nodes and to that of the parcel.
func (b *Box) ReceiveParcel(ctx context.Context, m Parcel, out *BoxSender) Receipt {
	hold()
	b.n += 3
	out.SendNews(News{Stamp{b.By, b.n}, []byte(b.By)})
	out.SendFind(Find{Stamp{b.By, b.n + 1}, m.Node})
	if m.N%10 == 0 {
		out.SendFind(Find{Stamp{b.By, b.n + 2}, "nowhere"})
	}
	if b.in.FencingToken() != topo.FencingToken(ctx) {
		return Receipt{ID: m.ID, N: -1}
	}
	return Receipt{m.ID, m.N, topo.FencingToken(ctx)}
}

// Tower runs in a process of its own.
type Tower struct{}

// Serve sends a signal to a node that does not exist, and reports the result to another node.
func (*Tower) Serve(_ context.Context, out *TowerSender) error {
	m := Signal{Node: "n1"}
	if err := out.SendSignal(Signal{Node: "nowhere"}); err != nil {
		m.Err = err.Error()
	}
	return out.SendSignal(m)
}
