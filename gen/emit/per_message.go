package emit

import (
	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// perMessage reports whether the processor receives its messages one by one, and each message
// is removed from its queue before its handler runs. This is necessary if the file says
// what happens after a failure, or if the time of a message matters.
func (q *processor) perMessage() bool { return q.Watch != nil || q.tracked() }

// tracked reports whether the generated code records the arrival of each message.
func (q *processor) tracked() bool {
	return q.TimesInputs() || q.Track != nil || q.InputRecovered != nil
}

// observesInputs reports whether the processor observes the state of its inputs.
func (q *processor) observesInputs() bool {
	return q.tracked() || q.InputClosed != nil || q.ProcessorRestarted != nil || q.AllInputsClosed != nil
}

// perMessageReceiver writes the receiver's side of a link to a per-message processor.
//
//	type plannerFromLidar struct {
//		link           piper.Link
//		points         queue.Edge[Points]
//		to             *plannerInstance
//		pointsDelivery piper.Delivery[Points]
//	}
func (p *part) perMessageReceiver(q *processor, l *link) {
	fields := append(l.receiverFields(), param("to", ptr(q.instance)))
	for _, e := range l.edges {
		fields = append(fields, param(e.delivery, piper("Delivery").Types(e.elementType())))
	}
	if l.shared {
		p.doc("%s delivers each %s of one sender to an instance of %s.", l.receiverType, l.edges[0].Message, q.Name)
	} else {
		p.doc("%s delivers the messages of an instance of %s to one of %s.", l.receiverType, l.from.Name, q.Name)
	}
	p.add(jen.Type().Add(id(l.receiverType)).Struct(fields...))
	if l.Sequenced {
		p.firstOf(l)
		p.perMessageMerge(l)
	} else {
		p.perMessageDrain(l, l.edges[0])
	}
	p.forwardMethod(l)
	for _, e := range l.edges {
		p.perMessageHandle(q, l, e)
	}
}

// findFirst writes the code that finds the oldest message of the queues of l.
func (p *part) findFirst(l *link) []code {
	v, o, batch, number, ok := p.v("l"), p.v("o"), p.v("batch"), p.v("number"), p.v("ok")
	find := []code{define(o, sel(v, "link", "Order").Call())}
	for _, e := range l.edges {
		add := func(n code) code { return sel(o, "Add").Call(index(e.constant), n) }
		if e.latest() {
			find = append(find, jen.If(jen.List(id(number), id(ok)).Op(":=").Add(sel(v, e.field, "First")).Call(), id(ok)).Block(add(id(number))))
			continue
		}
		find = append(find, jen.If(define(batch, peek(v, e.field, jen.Lit(1))), jen.Len(id(batch)).Op(">").Lit(0)).Block(
			add(id(batch).Index(jen.Lit(0)).Dot("N"))))
	}
	return find
}

// firstOf writes the methods that find the oldest message of several queues.
//
//	func (l *plannerFromDetector) first() piper.Order {
//		o := l.link.Order()
//		if batch := queue.Peek(&l.detection, 1); len(batch) > 0 {
//			o.Add(int(EdgeDetectorPlannerDetection), batch[0].N)
//		}
//		if number, ok := l.note.First(); ok {
//			o.Add(int(EdgeDetectorPlannerNote), number)
//		}
//		return o
//	}
func (p *part) firstOf(l *link) {
	v, o, ok := p.v("l"), p.v("o"), p.v("ok")
	p.doc("first finds the oldest message of all edges.")
	p.method(v, l.receiverType, "first", nil, []code{piper("Order")}, append(p.findFirst(l), jen.Return(id(o)))...)
	p.doc("Next returns the edge of the next message, if there is one.")
	p.short(v, l.receiverType, "Next", nil, []code{param("edge", jen.Int()), param(ok, jen.Bool())}, jen.Return(sel(v, "first").Call().Dot("Next").Call()))
}

// perMessageDrainMethod writes Drain around the code for one message.
func (p *part) perMessageDrainMethod(l *link, turn ...code) {
	v, x, n, err, budget := p.v("l"), p.v("x"), p.v("n"), p.v("err"), p.v("budget")
	p.method(v, l.receiverType, "Drain", []code{param(budget, jen.Int())}, []code{param(n, jen.Int()), param(err, jen.Error())},
		define(x, sel(v, "to")),
		jen.For(id(n).Op("<").Add(id(budget)).Op("&&").Add(id(err)).Op("==").Nil().Op("&&").Op("!").Add(sel(x, "unit", "MustYield")).Call()).Block(
			append(turn, id(n).Op("++"))...,
		),
		jen.Return(id(n), id(err)),
	)
}

// perMessageDrain writes Drain for a link of one queue.
//
//	func (l *plannerFromLidar) Drain(budget int) (n int, err error) {
//		x := l.to
//		for n < budget && err == nil && !x.unit.MustYield() {
//			if !l.pointsDelivery.Again() {
//				batch := queue.Peek(&l.points, 1)
//				if len(batch) == 0 {
//					break
//				}
//				l.pointsDelivery.Take(&l.link, l.points.Head.Index(), batch[0])
//				l.points.Head.Release(1)
//			}
//			err = l.handlePoints()
//			n++
//		}
//		return n, err
//	}
func (p *part) perMessageDrain(l *link, e *edge) {
	v, m, ok, batch := p.v("l"), p.v("m"), p.v("ok"), p.v("batch")
	var take []code
	if e.latest() {
		take = []code{
			jen.List(id(m), id(ok)).Op(":=").Add(sel(v, e.field, "Pop")).Call(),
			jen.If(jen.Op("!").Add(id(ok))).Block(jen.Break()),
			p.intoHand(e, id(m)),
		}
	} else {
		take = []code{
			define(batch, peek(v, e.field, jen.Lit(1))),
			jen.If(jen.Len(id(batch)).Op("==").Lit(0)).Block(jen.Break()),
			p.intoHand(e, id(batch).Index(jen.Lit(0))),
			sel(v, e.field, "Head", "Release").Call(jen.Lit(1)),
		}
	}
	p.doc("Drain handles up to %s messages, one at a time, so that a failure affects only one message.", p.v("budget"))
	p.perMessageDrainMethod(l,
		jen.If(jen.Op("!").Add(sel(v, e.delivery, "Again")).Call()).Block(take...),
		set(id(p.v("err")), sel(v, e.handle).Call()),
	)
}

func (p *part) intoHand(e *edge, m code) code {
	v := p.v("l")
	return sel(v, e.delivery, "Take").Call(ref(v, "link"), sel(v, e.field, "Head", "Index").Call(), m)
}

// perMessageMerge writes Drain for a link of several queues.
//
//	func (l *plannerFromDetector) Drain(budget int) (n int, err error) {
//		x := l.to
//		for n < budget && err == nil && !x.unit.MustYield() {
//			switch {
//			…
//			default:
//				o := l.first()
//				l.link.Handling(o.Edge)
//				switch EdgeIndex(o.Edge) {
//				case EdgeDetectorPlannerDetection:
//					…
//					err = l.handleDetection()
//				…
//				default:
//					return n, nil
//				}
//			}
//			n++
//		}
//		return n, err
//	}
func (p *part) perMessageMerge(l *link) {
	v, o, m, ok, batch, err := p.v("l"), p.v("o"), p.v("m"), p.v("ok"), p.v("batch"), p.v("err")
	var again, cases []code
	for _, e := range l.edges {
		handle := set(id(err), sel(v, e.handle).Call())
		again = append(again, jen.Case(sel(v, e.delivery, "Again").Call()).Block(handle))
		if e.latest() {
			cases = append(cases, jen.Case(id(e.constant)).Block(
				jen.If(jen.List(id(m), id(ok)).Op(":=").Add(sel(v, e.field, "Take")).Call(sel(o, "N")), id(ok)).Block(p.intoHand(e, id(m)), handle)))
			continue
		}
		cases = append(cases, jen.Case(id(e.constant)).Block(
			define(batch, peek(v, e.field, jen.Lit(1))),
			p.intoHand(e, id(batch).Index(jen.Lit(0)).Dot("M")),
			sel(v, e.field, "Head", "Release").Call(jen.Lit(1)),
			handle,
		))
	}
	cases = append(cases, jen.Default().Block(jen.Return(id(p.v("n")), jen.Nil())))
	p.doc("Drain handles up to %s messages, one at a time, in the order in which they were sent.", p.v("budget"))
	p.perMessageDrainMethod(l, jen.Switch().Block(append(again, jen.Default().Block(
		define(o, sel(v, "first").Call()),
		sel(v, "link", "Handling").Call(sel(o, "Edge")),
		jen.Switch(id("EdgeIndex").Call(sel(o, "Edge"))).Block(cases...),
	))...))
}

// keeps reports whether a message may be needed after its handler has failed or hangs.
// Then the handler gets a copy.
func (q *processor) keeps() bool {
	w := q.Watch
	return w != nil && !w.Isolated && (w.Attempts > 1 || w.DeadLetter >= 0 || w.Abandons())
}

// perMessageHandle writes the method that calls the handler of the current message.
//
//	func (l *plannerFromLidar) handlePoints() error {
//		x := l.to
//		if x.unit.HasFailed() {
//			l.pointsDelivery.Discard()
//			return nil
//		}
//		m := *l.pointsDelivery.Message()
//		x.in.Points.Set(m)
//		…
//		l.pointsDelivery.Done()
//		return x.received(PlannerInputPoints)
//	}
func (p *part) perMessageHandle(q *processor, l *link, e *edge) {
	h := &handler{part: p, receive: q.receiveHere(e), of: q}
	v, x, m, err, reply := p.v("l"), p.v("x"), p.v("m"), p.v("err"), p.v("reply")
	delivery := sel(v, e.delivery)
	body := []code{define(x, sel(v, "to"))}
	if q.Watch != nil {
		body = append(body, jen.If(sel(x, "unit", "HasFailed").Call()).Block(delivery.Clone().Dot("Discard").Call(), jen.Return(jen.Nil())))
	}
	if h.name == "" { // there is no handler
		if q.Watch == nil {
			body = nil
		}
		p.doc("%s discards the current message, which has no handler.", e.handle)
		p.method(v, l.receiverType, e.handle, nil, []code{jen.Error()}, append(body, delivery.Clone().Dot("Done").Call(), p.received(q, e, v+".to"))...)
		return
	}
	held := delivery.Clone().Dot("Message").Call()
	if q.keeps() && h.Message == plan.ByPointer && !e.CloneAgain {
		held = delivery.Clone().Dot("Copy").Call()
	}
	message, inside := e.inside(held), e.aimed || e.requests()
	if e.requests() {
		message = message.Clone().Dot("Message")
	}
	switch {
	case e.CloneAgain:
		message = message.Clone().Dot("Clone").Call()
	case h.Message == plan.ByPointer && inside:
		message = jen.Op("&").Add(message)
	case h.Message != plan.ByPointer && !inside:
		message = jen.Op("*").Add(message)
	}
	body = append(body, define(m, message))
	if q.tracksHere() {
		kept := id(m)
		if h.Message == plan.ByPointer && !e.CloneAgain {
			kept = jen.Op("*").Add(id(m))
		}
		body = append(body, sel(x, "in", q.input(e).ident, "Set").Call(kept))
	}
	argument := id(m)
	if e.CloneAgain && h.Message == plan.ByPointer {
		argument = jen.Op("&").Add(id(m))
	}
	body = append(body, p.userCallHere(q, &h.Method, func(call *jen.Statement) code {
		switch {
		case h.Reply && h.Error:
			return jen.List(id(reply), id(err)).Op(":=").Add(call)
		case h.Reply:
			return define(reply, call)
		case h.Error:
			return define(err, call)
		}
		return call
	}, argument)...)
	if h.Error {
		body = append(body, jen.If(id(err).Op("!=").Nil()).Block(jen.Return(id(err))))
	}
	if h.Reply {
		body = append(body, h.reply(delivery.Clone().Dot("Message").Call()))
	}
	body = append(body, delivery.Clone().Dot("Done").Call(), p.received(q, e, x))
	p.doc("%s calls the handler of the current message.", e.handle)
	p.method(v, l.receiverType, e.handle, nil, []code{jen.Error()}, body...)
}

// received writes the return statement of a method that handled a message. The statement also
// records that the input had a message, so that a silent input recovers.
func (p *part) received(q *processor, e *edge, x Ident, results ...code) code {
	if !q.tracked() {
		return jen.Return(append(results, jen.Nil())...)
	}
	return jen.Return(append(results, sel(x, "received").Call(id(q.input(e).constant)))...)
}

// userCallHere writes a call of a method of the user's type. The function statement turns the
// call into a statement; if it is nil, the call itself is the statement. If calls are timed,
// the fields of x are read before the time begins, because later they may belong to the
// instance that replaces this one.
func (p *part) userCallHere(q *processor, method *plan.Method, statement func(*jen.Statement) code, message ...code) []code {
	if statement == nil {
		statement = func(call *jen.Statement) code { return call }
	}
	x, value, ctx, out, callState := p.v("x"), p.v("p"), p.v("ctx"), p.v("out"), p.v("position")
	context, passed := code(sel(x, "unit", "Context").Call()), q.outArgument(method, p.senderOf(q))
	var before []code
	if q.CallsTimed() {
		before = []code{define(value, sel(x, "p"))}
		if method.Context {
			before, context = append(before, define(ctx, context)), id(ctx)
		}
		if passed != nil {
			before, passed = append(before, define(out, passed)), id(out)
		}
	}
	name, args := mustIdent(method.Name), arguments(method, context, passed, message...)
	if !q.CallsTimed() {
		return []code{statement(sel(x, "p", name).Call(args...))}
	}
	return append(before, define(callState, sel(x, "unit", "Enter").Call()), statement(sel(value, name).Call(args...)), sel(callState, "Leave").Call())
}

// notify writes a call of a method that observes inputs, and assigns its error to err.
func (p *part) notify(q *processor, method *plan.Method, argument ...code) []code {
	if method == nil {
		return nil
	}
	return p.userCallHere(q, method, func(call *jen.Statement) code {
		err := id(p.v("err"))
		switch {
		case method.Error && q.goesOn():
			return set(err, jen.Qual("errors", "Join").Call(err, call))
		case method.Error:
			return set(err, call)
		}
		return call
	}, argument...)
}

// goesOn reports whether an instance continues after an error. Then the remaining
// notifications are still made.
func (q *processor) goesOn() bool { return q.Watch != nil && q.Watch.Then != string(spec.Stop) }
