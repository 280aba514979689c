package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// receiverSide writes the type that delivers the messages of a link to their handlers.
//
//	type auditFromParser struct {
//		parserToAudit
//		to *auditInstance
//	}
func (p *part) receiverSide(q *processor, l *link) {
	switch {
	case l.receiverType == "": // the code that makes the link delivers its messages
		return
	case q.perMessage():
		p.perMessageReceiver(q, l)
		return
	case l.shared:
		p.sharedDrain(q, l)
		return
	}
	fields := append(l.receiverFields(), param("to", ptr(q.instance)))
	var handlers []*handler
	for _, e := range l.edges {
		h := &handler{part: p, receive: q.receive(e), of: q}
		handlers = append(handlers, h)
		if h.holds() {
			fields = append(fields, remark(param(e.held, e.elementType()), "the message while its handler runs"))
		}
	}
	p.doc("%s delivers the messages of an instance of %s to one of %s.", l.receiverType, l.from.Name, q.Name)
	p.add(jen.Type().Add(id(l.receiverType)).Struct(fields...))
	if l.Sequenced {
		p.merge(l, handlers)
	} else {
		p.drainMethod(l, handlers[0])
	}
	p.forwardMethod(l)
}

// drain returns the function that delivers the messages of a link of one queue to instance
// x, and the statements that must come before it. The function delivers the messages that
// Peek returns; the runtime calls it again while the queue has more.
//
//	…
//		for batch := queue.Peek(&l.Queue, budget); n < len(batch); n++ {
//			if err != nil || x.unit.MustYield() {
//				break
//			}
//			m := queue.Lend(&batch[n])
//			err = x.p.ReceiveRaw(m, &x.out)
//			queue.Reclaim(m)
//		}
//		return l.Queue.Head.Release(n), err
//	…
func (p *part) drain(h *handler) (before []code, drain *jen.Statement) {
	if h.holds() {
		before = []code{remark(jen.Var().Add(param(h.edge.held, h.edge.elementType())), "the message while its handler runs")}
	}
	return before, jen.Func().Params(p.drainParams()...).Params(p.drainResults()...).Block(p.drainBody(h)...)
}

func (p *part) drainParams() []code { return []code{param(p.v("budget"), jen.Int())} }
func (p *part) drainResults() []code {
	return []code{param(p.v("n"), jen.Int()), param(p.v("err"), jen.Error())}
}

// drainBody is the body of drain.
func (p *part) drainBody(h *handler) (body []code) {
	n := p.v("n")
	if h.edge.latest() {
		m := p.v("m")
		turn := append(h.take(m, h.queue().Dot("Pop").Call()), jen.If(jen.Op("!").Add(id(p.v("ok")))).Block(jen.Break()))
		turn = append(turn, h.handle(h.taken(m))...)
		body = append(body, jen.For(id(n).Op("<").Add(id(p.v("budget"))).Op("&&").Add(p.goesOn(h))).Block(append(turn, id(n).Op("++"))...))
	} else {
		batch := p.v("batch")
		look := define(batch, queue("Peek").Call(h.queueRef(), id(p.v("budget"))))
		turn := h.handle(id(batch).Index(id(n)))
		if h.edge.exact() {
			turn = append([]code{h.releaseOne()}, turn...)
		}
		turn = append([]code{jen.If(h.stops()).Block(jen.Break())}, turn...)
		body = append(body, jen.For(look, id(n).Op("<").Len(id(batch)), id(n).Op("++")).Block(turn...))
		if !h.edge.exact() {
			return append(body, p.drained(h.queue().Dot("Head").Dot("Release").Call(id(n)), h))
		}
	}
	return append(body, p.drained(id(n), h))
}

// drainMethod writes Drain for a link with one queue from an external sender.
func (p *part) drainMethod(l *link, h *handler) {
	v, x := p.v("l"), p.v("x")
	p.method(v, l.receiverType, "Drain", p.drainParams(), p.drainResults(), append([]code{define(x, sel(v, "to"))}, p.drainBody(h)...)...)
}

// sharedDrain writes the function that returns the drain function of several links.
func (p *part) sharedDrain(q *processor, l *link) {
	h := &handler{part: p, receive: q.receive(l.edges[0]), of: q, sharing: true}
	before, drain := p.drain(h)
	p.doc("%s delivers the messages in q to x. The links of all processors that send a %s use it.", l.receiverType, l.edges[0].Message)
	p.file.Comment("//")
	p.file.Comment("//go:noinline")
	p.add(jen.Func().Add(id(l.receiverType)).Params(param(p.v("q"), pointer(h.edge.queueType())), param(p.v("x"), ptr(q.instance))).Add(piper("Drain")).Block(
		append(before, jen.Return(drain))...))
}

// releaseOne writes the code that removes the message from its queue before its handler runs.
func (h *handler) releaseOne() code {
	return remark(h.queue().Dot("Head").Dot("Release").Call(jen.Lit(1)), "the message leaves the queue")
}

// merge writes Drain for a link of several queues. It delivers their messages in the
// order in which they were sent.
//
//	func (l *auditFromParser) first() piper.Order {
//		o := l.link.Order()
//		if batch := queue.Peek(&l.good, 1); len(batch) > 0 {
//			o.Add(int(EdgeParserAuditGood), batch[0].N)
//		}
//		…
//		return o
//	}
//
//	func (l *auditFromParser) Drain(budget int) (n int, err error) {
//		x := l.to
//		for n < budget && !x.unit.MustYield() {
//			o := l.first()
//			l.link.Handling(o.Edge)
//			switch EdgeIndex(o.Edge) {
//			case EdgeParserAuditGood:
//				batch := queue.Peek(&l.good, budget-n)
//				k := 0
//				for k < len(batch) && batch[k].N < o.Until && !x.unit.MustYield() {
//					x.p.ReceiveGood(batch[k].M, &x.out)
//					k++
//				}
//				l.good.Head.Release(k)
//				n += k
//			…
//			case EdgeParserAuditStat:
//				if m, ok := l.stat.Take(o.N); ok {
//					x.p.ReceiveStat(m)
//					n++
//				}
//			default:
//				return n, nil
//			}
//		}
//		return n, nil
//	}
func (p *part) merge(l *link, handlers []*handler) {
	x, n, err, v, o := p.v("x"), p.v("n"), p.v("err"), p.v("l"), p.v("o")
	batch, ok := p.v("batch"), p.v("ok")
	var cases []code
	for _, h := range handlers {
		e := h.edge
		if e.latest() {
			m := p.v("m")
			taken := sel(v, e.field, "Take").Call(sel(o, "N"))
			given := append(h.handle(h.taken(m)), id(n).Op("++"))
			if h.holds() {
				cases = append(cases, jen.Case(id(e.constant)).Block(append(h.take(m, taken), jen.If(id(ok)).Block(given...))...))
			} else {
				cases = append(cases, jen.Case(id(e.constant)).Block(jen.If(h.take(m, taken)[0], id(ok)).Block(given...)))
			}
			continue
		}
		cases = append(cases, jen.Case(id(e.constant)).Block(append(
			[]code{define(batch, peek(v, e.field, id(p.v("budget")).Op("-").Add(id(n))))},
			h.batch(id(batch), sel(o, "Until"))...,
		)...))
	}
	cases = append(cases, jen.Default().Block(p.drained(id(p.v("n")), handlers...)))
	p.firstOf(l)
	p.doc("Drain delivers up to %s messages, in the order in which they were sent.", p.v("budget"))
	p.method(v, l.receiverType, "Drain", []code{param(p.v("budget"), jen.Int())}, []code{param(n, jen.Int()), param(err, jen.Error())},
		define(x, sel(v, "to")),
		jen.For(id(n).Op("<").Add(id(p.v("budget"))).Op("&&").Add(p.goesOn(handlers...))).Block(
			define(o, sel(v, "first").Call()),
			sel(v, "link", "Handling").Call(sel(o, "Edge")),
			jen.Switch(id("EdgeIndex").Call(sel(o, "Edge"))).Block(cases...),
		),
		p.drained(id(p.v("n")), handlers...),
	)
}

// handler writes calls of the method that takes the messages of one edge.
type handler struct {
	*part
	*receive
	of *processor

	// If linking is set, a closure in the code that makes the link calls the handler. If
	// sharing is set, a closure in a function for several links calls it, and the variable q
	// is the queue. Otherwise a method of the link calls it.
	linking, sharing bool
}

// inClosure reports whether a closure calls the handler. In the code that makes the link, the
// variable from is the sending instance.
func (h *handler) inClosure() bool { return h.linking || h.sharing }

// queue is the queue of the messages.
func (h *handler) queue() *jen.Statement {
	switch {
	case h.sharing:
		return id(h.v("q"))
	case h.linking:
		return sel(h.v("l"), "Queue")
	}
	return sel(h.v("l"), h.edge.field)
}

// queueRef is a pointer to the queue.
func (h *handler) queueRef() *jen.Statement {
	if h.sharing {
		return h.queue()
	}
	return jen.Op("&").Add(h.queue())
}

// sender is the index of the sending instance, or its address if it may be one of those on
// every node.
func (h *handler) sender() code {
	switch aimed := h.edge.reply.aimed; {
	case aimed && h.inClosure():
		return border("OriginOf").Call(ref(h.v("from"), "unit"))
	case aimed:
		return border("Origin").Call(ref(h.v("l"), "link"))
	case h.inClosure():
		return sel(h.v("from"), "unit", "Index").Call()
	}
	return sel(h.v("l"), "link", "From").Call()
}

// heldIn is the variable that holds a message while its handler has a pointer to it.
func (h *handler) heldIn() *jen.Statement {
	if h.inClosure() {
		return id(h.edge.held)
	}
	return sel(h.v("l"), h.edge.held)
}

// goesOn is the condition for delivering the next message to one of handlers.
func (p *part) goesOn(handlers ...*handler) code {
	goesOn := jen.Op("!").Add(sel(p.v("x"), "unit", "MustYield")).Call()
	if canFail(handlers) {
		return id(p.v("err")).Op("==").Nil().Op("&&").Add(goesOn)
	}
	return goesOn
}

// stops is the opposite of goesOn, for a separate if statement in the loop. This takes
// fewer instructions for each message than a longer loop condition.
func (h *handler) stops() code {
	holds := sel(h.v("x"), "unit", "MustYield").Call()
	if h.Error {
		return id(h.v("err")).Op("!=").Nil().Op("||").Add(holds)
	}
	return holds
}

// drained is the return statement of Drain.
func (p *part) drained(n code, handlers ...*handler) code {
	if canFail(handlers) {
		return jen.Return(n, id(p.v("err")))
	}
	return jen.Return(n, jen.Nil())
}

// canFail reports whether one of the handlers returns an error.
func canFail(handlers []*handler) bool {
	return slices.ContainsFunc(handlers, func(h *handler) bool { return h.Error })
}

// exact reports whether a message leaves its queue before its handler runs, so that
// only waiting messages count against the capacity.
func (e *edge) exact() bool { return e.offers() || e.fails() }

// holds reports whether a variable must hold the message while its handler has a
// pointer to it, because the message has left its queue.
func (h *handler) holds() bool { return h.edge.latest() && h.Message == plan.ByPointer }

// take writes the code that takes a message from a queue that drops the oldest. taken
// is the variable with that message.
func (h *handler) take(m Ident, from code) []code {
	ok := h.v("ok")
	if h.holds() {
		return []code{
			jen.Var().Add(id(ok)).Bool(),
			jen.List(h.heldIn(), id(ok)).Op("=").Add(from),
		}
	}
	return []code{jen.List(id(m), id(ok)).Op(":=").Add(from)}
}

func (h *handler) taken(m Ident) *jen.Statement {
	if h.holds() {
		return h.heldIn()
	}
	return id(m)
}

// batch writes the delivery of a batch. If until is not nil, only messages with a smaller
// number are delivered.
func (h *handler) batch(batch, until code) []code {
	k, n := h.v("k"), h.v("n")
	at := func() *jen.Statement { return jen.Add(batch).Index(id(k)) }
	element := at()
	goesOn := id(k).Op("<").Len(batch)
	if until != nil {
		goesOn.Op("&&").Add(at()).Dot("N").Op("<").Add(until)
		element.Dot("M")
	}
	goesOn.Op("&&").Add(h.goesOn(h))
	if h.edge.exact() {
		return []code{
			jen.For(define(k, jen.Lit(0)), goesOn, id(k).Op("++")).Block(append(append(
				[]code{h.releaseOne()},
				h.handle(element)...),
				id(n).Op("++"))...),
		}
	}
	return []code{
		define(k, jen.Lit(0)),
		jen.For(goesOn).Block(append(h.handle(element), id(k).Op("++"))...),
		h.queue().Dot("Head").Dot("Release").Call(id(k)),
		id(n).Op("+=").Add(id(k)),
	}
}

// handle writes the call for one element of the queue.
func (h *handler) handle(element *jen.Statement) []code {
	if h.name == "" { // there is no handler
		return nil
	}
	message := h.edge.inside(element).Clone()
	if h.edge.requests() {
		message.Dot("Message")
	}
	if h.Message != plan.ByPointer {
		return h.answer(h.call(message), element)
	}
	m := h.v("m")
	return append(append(
		[]code{define(m, queue("Lend").Call(jen.Op("&").Add(message)))},
		h.answer(h.call(id(m)), element)...),
		queue("Reclaim").Call(id(m)))
}

// call is the call of the handler.
func (h *handler) call(message code) code {
	x := h.v("x")
	return sel(x, "p", h.name).Call(arguments(&h.Method, sel(x, "unit", "Context").Call(), h.of.outArgument(&h.Method, h.senderOf(h.of)), message)...)
}

// answer writes the call and the code that uses its results.
func (h *handler) answer(call code, element *jen.Statement) []code {
	err, reply := h.v("err"), h.v("reply")
	if h.edge.Reply == "" {
		if h.Error {
			return []code{set(id(err), call)}
		}
		return []code{call}
	}
	send := h.reply(element)
	if !h.Error {
		return []code{define(reply, call), send}
	}
	return []code{
		jen.Var().Add(id(reply)).Add(typeCode(h.edge.ReplyType)),
		jen.If(jen.List(id(reply), id(err)).Op("=").Add(call), id(err).Op("==").Nil()).Block(send),
	}
}

// reply writes the code that sends the reply to an element of the queue.
func (h *handler) reply(element *jen.Statement) code {
	args := []code{id(h.v("reply"))}
	if h.edge.requests() {
		return h.edge.inside(element).Clone().Dot("Reply").Call(args...)
	}
	if h.edge.reply.link.many() {
		args = append([]code{h.sender()}, args...)
	}
	return sel(h.v("x"), "out", h.edge.reply.replier()).Call(args...)
}
