package emit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/plan"
)

// model is a plan with checked names, and with names for the declarations that only
// the output has.
type model struct {
	plan          *plan.Plan
	scope         *scope
	processors    []*processor
	edges         []*edge
	links         []*link
	tables        [2]Ident  // the tables of processor names and edge names
	boundary      *boundary // nil: no processor is isolated
	buildConstant Ident     // ties the wiring to its ports; set when the ports are made
}

type processor struct {
	*plan.Processor
	index         int
	ident         Ident
	local         Ident
	constant      Ident // ProcessorParser
	sender        Ident // ParserSender; not exported if it only sends replies; "" for none
	recorder      Ident // ParserRecorder
	instance      Ident // parserInstance
	field         Ident // of Topology
	linker        Ident // of an external processor: the interface that makes its links
	joiner        Ident // of an external processor: the type that implements linker
	others        bool  // messages may go to the instances of other nodes, although each node has them
	guest         Ident // of an external processor: the type that stands for it on other nodes; "" for none
	sends         []*send
	links         []*link // outgoing links, by receiver
	incomingLinks []*link // incoming links
	timers        []*edge
	inputs        []*input
	inputEdges    Ident      // the table of the inputs' edges
	inputNames    Ident      // the table of the inputs' names
	receives      []*receive // by edge, like Incoming
	adapters      []*adapter

	// Only for isolated processors.
	remote  Ident // type of the proxy of an instance
	process Ident // type of the instance in its process
	outside Ident // type that makes the links in that process
}

// edge is an edge with the names of its fields and constants.
type edge struct {
	*plan.Edge
	index    int
	constant Ident // EdgeFeedParserRaw
	field    Ident // the queue, in the link
	held     Ident // in the receiver type: a message that left the queue while its handler has a pointer to it
	delivery Ident // in the receiver type: the current message
	handle   Ident // the method that calls the handler of the current message
	from, to *processor
	link     *link // nil for a timer
	ask      *edge // if this edge carries replies: the edge of the requests
	reply    *edge // the edge that carries the replies to this edge
	ticker   Ident // type of a timer's link

	everywhere bool // its messages go to the instances of all nodes
	aimed      bool // each message goes to one instance of a processor that every node has
}

// requests reports whether the queue holds requests, to which a handler can reply.
func (e *edge) requests() bool { return e.from != nil && e.from.External && e.Reply != "" }

// link joins a pair of processors. If several processors send only one and the same
// message to a processor, their links have the same type.
type link struct {
	*plan.Link
	edges        []*edge
	from, to     *processor
	name         Ident // its type: feedToParser; "" if it is a piper.LinkOf
	receiverType Ident // delivers its messages: parserFromFeed; if shared: orderAtTotals; "" if the link does
	shared       bool  // other links use the same receiver type
	first        bool  // the first of the links that share a receiver type
	field        Ident // in the sender
	getter       Ident // method of the sender: toParser
	outside      Ident // its type in the process of an isolated sender
}

// slots is the number of instances to which links may lead. If messages go to the instances of
// other nodes, although each node has them, the last one stands for those.
func (q *processor) slots() int {
	if q.others {
		return q.Instances + 1
	}
	return q.Instances
}

// many reports whether the receiver has several instances.
func (l *link) many() bool { return l.to.slots() > 1 }

// single reports whether the link has one queue. Then the sender holds only that queue.
func (l *link) single() bool { return !l.Sequenced && !l.from.External }

// send is a method of a sender.
type send struct {
	*plan.Send
	name        Ident
	ask         Ident // the Ask method with the same edge
	field       Ident // in the recorder
	edges       []*edge
	whole       bool    // it sends along all edges that carry the message
	same        *send   // a whole send that does the same, because there is only one edge; else nil
	sameMessage []*send // all sends of the message
}

// receive is the handler of one edge. Its Name is "" if the type has no such method yet.
type receive struct {
	plan.Method
	edge *edge
	name Ident
}

// adapter is a type that adapts a sender to an interface whose methods return no errors.
type adapter struct {
	name    Ident
	methods []string
}

func newModel(p *plan.Plan, o Options) (m *model, err error) {
	defer recoverBadName(&err)
	mustIdent(p.Package)
	m = &model{plan: p, scope: newScope(p, o)}
	m.tables = [2]Ident{m.scope.top("processorNames"), m.scope.top("edgeNames")}
	for i := range p.Processors {
		m.addProcessor(i)
	}
	for i := range p.Edges {
		m.addEdge(i)
	}
	for i, e := range m.edges {
		e.everywhere, e.aimed = m.plan.Everywhere(i), m.plan.Aimed(i)
		if e.everywhere || e.aimed {
			e.to.others = true
		}
	}
	for i := range p.Links {
		m.addLink(i)
	}
	for _, q := range m.processors {
		m.addMethods(q)
	}
	for _, q := range m.processors {
		m.addInputs(q)
	}
	m.nameLinks()
	m.nameFields()
	m.addBoundary(o.Schema)
	m.addEncoders()
	return m, nil
}

func (m *model) addProcessor(i int) {
	p := &m.plan.Processors[i]
	q := &processor{Processor: p, index: i, ident: mustIdent(p.Ident), local: mustIdent(p.Local), constant: mustIdent(p.Index())}
	local := q.local
	replies := slices.ContainsFunc(p.Outgoing, func(e int) bool { return m.plan.Edges[e].ReplyOf >= 0 || m.plan.Edges[e].DeadLetter })
	switch {
	case p.HasSender():
		q.sender, q.recorder = mustIdent(p.Sender()), mustIdent(p.Recorder())
	case replies, len(p.Sends) > 0: // of a state machine
		q.sender = m.scope.top(local + "Sender")
	}
	switch {
	case !p.External:
		q.instance = m.scope.top(local + "Instance")
	case slices.ContainsFunc(p.Outgoing, func(e int) bool { return m.plan.Edges[e].Durable == nil }):
		q.linker, q.joiner = m.scope.top(local+"Links"), m.scope.top(local+"Joiner")
		if slices.ContainsFunc(p.Outgoing, func(e int) bool { return m.plan.Edges[e].Crosses }) {
			q.guest = m.scope.top(local + "Guest")
		}
	}
	m.processors = append(m.processors, q)
}

func (m *model) addEdge(i int) {
	p := &m.plan.Edges[i]
	ident := mustIdent(p.Ident)
	mustIdents(p.Access)
	e := &edge{Edge: p, index: i, constant: "Edge" + ident, to: m.processors[p.To]}
	m.edges = append(m.edges, e)
	if p.From < 0 {
		e.ticker = m.scope.top(ident.lower("Ticker"))
		e.to.timers = append(e.to.timers, e)
		return
	}
	e.from = m.processors[p.From]
	if p.ReplyOf >= 0 {
		e.ask = m.edges[p.ReplyOf]
		e.ask.reply = e
	}
}

func (m *model) addLink(i int) {
	p := &m.plan.Links[i]
	mustIdent(p.Ident)
	l := &link{Link: p, from: m.processors[p.From], to: m.processors[p.To]}
	// Names that the embedded parts and the outer struct declare are taken.
	fields := names{"link": true, "gate": true, "to": true, "first": p.Sequenced, "instance": true, "limit": true, "buffer": true, "flush": true}
	for _, index := range p.Edges {
		e := m.edges[index]
		message := mustIdent(e.Message)
		if e.ask != nil {
			message += "For" + Ident(e.ask.Message) // checked with its own edge
		}
		e.link = l
		e.field = fields.take(message.lower("Message"))
		l.edges = append(l.edges, e)
	}
	for _, e := range l.edges {
		e.held = fields.take(e.field + "Held")
		e.delivery = fields.take(e.field + "Delivery")
		e.handle = fields.take("handle" + e.field.upper())
	}
	l.from.links = append(l.from.links, l)
	l.to.incomingLinks = append(l.to.incomingLinks, l)
	m.links = append(m.links, l)
}

// shareKey is equal for links that can share a receiver type.
type shareKey struct {
	to                     *processor
	message, full, handler string
	aimed                  bool
}

// shareKey returns the key of l; ok is false if l cannot share its receiver type.
func (l *link) shareKey() (key shareKey, ok bool) {
	e := l.edges[0]
	if !l.single() || l.to.Inputs != nil || e.Reply != "" || e.ask != nil {
		return key, false
	}
	return shareKey{l.to, e.Message, e.Full, l.to.receive(e).Name, e.aimed}, true
}

// nameLinks names the types of links and their receiver types: after the pair, or after
// the message if several pairs share a type.
func (m *model) nameLinks() {
	sharing := make(map[shareKey][]*link)
	for _, l := range m.links {
		if key, ok := l.shareKey(); ok {
			sharing[key] = append(sharing[key], l)
		}
	}
	for _, l := range m.links {
		key, _ := l.shareKey()
		all := sharing[key]
		l.shared = len(all) > 1
		l.first = !l.shared || l == all[0]
		if !l.single() {
			l.name = m.scope.top(Ident(l.Ident))
		}
		switch {
		case !l.first:
			l.receiverType = all[0].receiverType
		case l.shared:
			l.receiverType = m.scope.top(Ident(l.edges[0].Message).lower("Message") + "At" + l.to.ident)
		case !l.single() || l.to.perMessage():
			l.receiverType = m.scope.top(l.to.local + "From" + l.from.ident)
		}
	}
}

// receive returns the handler of an edge.
func (q *processor) receive(e *edge) *receive {
	return q.receives[slices.IndexFunc(q.receives, func(r *receive) bool { return r.edge == e })]
}

func (m *model) addMethods(q *processor) {
	recorded := names{"Sender": true, "sender": true} // other members of a recorder
	byMessage := make(map[string][]*send)
	for i := range q.Sends {
		p := &q.Sends[i]
		s := &send{Send: p, name: mustIdent(p.Name), field: Ident(strings.TrimPrefix(p.Name, "Send"))}
		if !s.Proposes { // the send of the proposal message is recorded instead
			s.field = recorded.take(s.field)
		}
		if p.Ask != "" {
			s.ask = mustIdent(p.Ask)
		}
		for _, e := range p.Edges {
			s.edges = append(s.edges, m.edges[e])
		}
		before := byMessage[s.Message]
		if s.whole = before == nil; !s.whole && !s.Proposes && len(before[0].edges) == 1 {
			s.same = before[0]
		}
		byMessage[s.Message] = append(before, s)
		q.sends = append(q.sends, s)
	}
	for _, s := range q.sends {
		s.sameMessage = byMessage[s.Message]
	}
	for i, e := range q.Incoming {
		r := &receive{edge: m.edges[e]}
		if i < len(q.Receives) && q.Receives[i].Name != "" {
			r.Method = q.Receives[i].Method
			r.name = mustIdent(r.Name)
		}
		q.receives = append(q.receives, r)
		m.addAdapter(q, &r.Method)
	}
	for _, method := range q.Methods() {
		m.addAdapter(q, method)
	}
	slices.SortStableFunc(q.links, func(a, b *link) int { return cmp.Compare(a.to.index, b.to.index) })
}

// addInputs names the inputs of a processor that observes them.
func (m *model) addInputs(q *processor) {
	for i := range q.Inputs {
		in := &q.Inputs[i]
		ident := mustIdent(in.Ident)
		q.inputs = append(q.inputs, &input{Input: in, edge: m.edges[in.Edge], ident: ident, constant: q.inputType() + ident})
	}
	if len(q.inputs) > 0 {
		q.inputEdges, q.inputNames = m.scope.top(q.local+"InputEdges"), m.scope.top(q.local+"InputNames")
	}
}

// addAdapter adds the adapter that a method needs, if any. Methods that omit the same
// errors share an adapter.
func (m *model) addAdapter(q *processor, method *plan.Method) {
	mustIdents(method.OutMethods)
	mustIdents(method.OutNames)
	if method.Out == plan.AdaptedOut && q.adapter(method) == nil {
		q.adapters = append(q.adapters, &adapter{name: m.scope.top(q.local + "Out"), methods: method.OutMethods})
	}
}

func (q *processor) adapter(method *plan.Method) *adapter {
	for _, a := range q.adapters {
		if slices.Equal(a.methods, method.OutMethods) {
			return a
		}
	}
	return nil
}

// nameFields chooses distinct names for the members of Topology and of the senders.
func (m *model) nameFields() {
	// Methods for users are exported, so they cannot collide with fields. Our own
	// unexported methods can.
	topology := names{"pool": true, "graph": true, "node": m.plan.Cluster != nil, "openNode": m.plan.Cluster != nil, "openDurable": m.plan.Durable != nil}
	for _, q := range m.processors {
		q.field = topology.take(q.local)
		members := names{"out": true, "links": true, "door": true, "position": true, "unit": q.guest != ""}
		for _, s := range q.sends {
			if s.ask != "" {
				members[s.callsField()], members[s.core()] = true, true
			}
		}
		for _, l := range q.links {
			l.getter = members.take("to" + l.to.ident)
		}
		for _, l := range q.links {
			l.field = members.take(l.to.local)
		}
	}
}

// callsField is the field of an external sender that holds the calls of an Ask
// method. core is the method that sends for both Send and Ask.
func (s *send) callsField() Ident { return "calls" + s.field }
func (s *send) core() Ident       { return "send" + s.field }

// edgeText is the edge as the file writes it.
func (m *model) edgeText(e *edge) string { return text(m.plan.EdgeText(e.index)) }
