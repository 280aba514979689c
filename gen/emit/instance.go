package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// wiringHead writes the comment that explains the declarations of each processor.
func (p *part) wiringHead() {
	i := slices.IndexFunc(p.processors, func(q *processor) bool { return q.instance != "" && len(q.links) > 0 })
	if i < 0 {
		return
	}
	q := p.processors[i]
	p.doc("Each processor has declarations like those of %s below. %s is one instance. New gives it to the runtime, which calls its methods. Link "+
		"makes the link to instance i of another processor, before the first message. It also sets the code that calls the handlers.", q.Name, q.instance)
	p.file.Line()
}

// instance writes the type of a processor's instances.
//
//	type feedInstance struct {
//		unit piper.Unit
//		out  FeedSender
//		p    *Feed
//	}
func (p *part) instance(q *processor) {
	out := jen.Add(piper("Out"))
	if q.sender != "" {
		out = id(q.sender)
	}
	if q.Watch != nil {
		out = pointer(out)
	}
	own := pointer(typeCode(q.Type))
	if q.Isolated() {
		own = ptr(q.remote)
	}
	fields := []code{param("unit", piper("Unit")), id("out").Add(out), param("p", own)}
	if q.Watch != nil && !q.Isolated() {
		fields = append(fields, param("construct", q.constructorType()))
	}
	if q.observesInputs() {
		fields = append(fields, param("inputs", supervise("Inputs")))
	}
	if q.tracksHere() {
		fields = append(fields, param("in", ptr(q.trackerType())))
	}
	if p.plan.DurableInputs(q.index) {
		fields = append(fields, param("inbox", edgesPkg("Inbox")))
	}
	p.add(jen.Type().Add(id(q.instance)).Struct(fields...))
}

// adopted writes the method that the pool calls after Pool.Adopt.
//
//	func (x *auditInstance) Adopted() {
//		tick := &everyAudit1s{to: x}
//		tick.timer.Start(tick, &x.unit, int(EdgeEveryAudit1s))
//	}
func (p *part) adopted(q *processor) {
	x := p.v("x")
	var body []code
	if q.Machine != nil && q.Machine.State != "" {
		body = append(append(body, p.events(q)...), sel(x, "p", "Join").Call(ref(x, "unit")))
	}
	if q.exchangesSender() {
		body = append(body, set(sel(x, "out", "position"), sel(x, "unit", "Position").Call()))
	}
	for _, e := range q.timers {
		body = append(body, p.startTimer(e)...)
	}
	if len(body) > 0 {
		p.method(x, q.instance, "Adopted", nil, nil, body...)
	}
}

// startTimer writes the code that starts a timer of instance x.
func (p *part) startTimer(e *edge) []code {
	t, x := p.v("tick"), p.v("x")
	start := []code{
		define(t, jen.Op("&").Add(id(e.ticker)).Values(key("to", id(x)))),
		sel(t, "timer", "Start").Call(id(t), ref(x, "unit"), index(e.constant)),
	}
	if e.Route == plan.Range && (e.Offset > 0 || e.Count < e.to.Instances) {
		i := p.v("i")
		return []code{jen.If(define(i, sel(x, "unit", "Index").Call()), id(i).Op(">=").Lit(e.Offset).Op("&&").Add(id(i)).Op("<").Lit(e.Offset+e.Count)).Block(start...)}
	}
	if len(e.to.timers) > 1 {
		return []code{jen.Block(start...)}
	}
	return start
}

// adapter writes the type that adapts a sender to an interface whose methods return no error.
//
//	type adaptedOut struct {
//		*AdaptedSender
//	}
//
//	func (o adaptedOut) SendItem(m Item) { _ = o.AdaptedSender.SendItem(m) }
func (p *part) adapter(q *processor, a *adapter) {
	o, m := p.v("o"), p.v("m")
	p.doc("%s adapts the sender of %s to an interface whose methods return no error. An error would only say that the topology is stopping.", a.name, q.Name)
	p.add(jen.Type().Add(id(a.name)).Struct(ptr(q.sender)))
	for _, s := range q.sends {
		if !slices.Contains(a.methods, s.Name) {
			continue
		}
		p.add(jen.Func().Params(id(o).Add(id(a.name))).Add(id(s.name)).Params(param(m, typeCode(s.Type))).
			Add(oneLine(jen.Id("_").Op("=").Add(sel(o, q.sender, s.name)).Call(id(m)))))
	}
}

// outArgument is the argument that passes sender to a method of q. It is nil if the method
// takes no sender.
func (q *processor) outArgument(method *plan.Method, sender code) code {
	switch method.Out {
	case plan.NoOut:
		return nil
	case plan.AdaptedOut:
		return id(q.adapter(method).name).Values(sender)
	}
	return sender
}

// arguments are the arguments of a call of a method: the context if the method takes one,
// the message, and out unless it is nil.
func arguments(method *plan.Method, context, out code, message ...code) (args []code) {
	if method.Context || method.Durable {
		args = append(args, context)
	}
	if args = append(args, message...); out != nil {
		args = append(args, out)
	}
	return args
}

// senderOf is a pointer to the sender of an instance.
func (p *part) senderOf(q *processor) code {
	if q.Watch != nil {
		return sel(p.v("x"), "out")
	}
	return ref(p.v("x"), "out")
}

// lifecycle writes those lifecycle methods of an instance that the processor's type has.
//
//	func (x *feedInstance) Ping(budget int) (n int, err error) {
//		for n < budget && !x.unit.MustYield() {
//			if err := x.p.Ping(&x.out); err != nil {
//				return n, err
//			}
//			n++
//		}
//		return n, nil
//	}
func (p *part) lifecycle(q *processor) {
	if q.Machine != nil {
		p.machine(q)
	}
	x, n, err, budget, ctx := p.v("x"), p.v("n"), p.v("err"), p.v("budget"), p.v("ctx")
	if !q.Isolated() && (q.Init != nil || q.observesInputs()) {
		p.initMethod(q)
	}
	if q.Ping != nil {
		failed := jen.Return(id(n), id(err))
		turn := p.userCallHere(q, q.here(q.Ping), func(call *jen.Statement) code {
			if q.CallsTimed() {
				return define(err, call)
			}
			return jen.If(define(err, call), id(err).Op("!=").Nil()).Block(failed)
		})
		if q.CallsTimed() {
			turn = append(turn, jen.If(id(err).Op("!=").Nil()).Block(failed))
		}
		p.method(x, q.instance, "Ping", []code{param(budget, jen.Int())}, []code{param(n, jen.Int()), param(err, jen.Error())},
			jen.For(id(n).Op("<").Add(id(budget)).Op("&&").Op("!").Add(sel(x, "unit", "MustYield")).Call()).Block(append(turn, id(n).Op("++"))...),
			jen.Return(id(n), jen.Nil()),
		)
	}
	if q.Serve != nil && !q.Isolated() {
		serve := *q.Serve
		serve.Context = false // the argument ctx below is its context
		p.compact(x, q.instance, "Serve", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()}, p.returnUserCall(q, &serve, id(ctx)))
	}
	if q.Finish != nil {
		p.compact(x, q.instance, "Finish", nil, []code{jen.Error()}, p.returnUserCall(q, q.here(q.Finish)))
	}
	if q.Close != nil && !q.Isolated() {
		p.closer(q)
	}
}

// closer writes the method that returns the method Close of the current value.
func (p *part) closer(q *processor) {
	x := p.v("x")
	value := sel(x, "p", "Close")
	if q.Isolated() {
		value = sel(x, "p", "remote", "Close")
	}
	p.short(x, q.instance, "Closer", nil, []code{jen.Func().Params().Error()}, jen.Return(value))
}

// initMethod writes Init.
func (p *part) initMethod(q *processor) {
	x := p.v("x")
	ctx, call := p.initCall(q, x+".p")
	if call == nil {
		call = jen.Nil()
	}
	var body []code
	if q.observesInputs() {
		body = append(body, sel(x, "listen").Call())
	}
	p.compact(x, q.instance, "Init", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()}, append(body, jen.Return(call)))
}

// initCall is the call of a value's Init, or nil if the value has no Init. ctx is the name of the
// context that Init takes, or "_" if it takes none.
func (p *part) initCall(q *processor, value Ident) (ctx Ident, call *jen.Statement) {
	switch {
	case q.Init == nil:
		return "_", nil
	case !q.Init.Context:
		return "_", sel(value, "Init").Call()
	}
	return p.v("ctx"), sel(value, "Init").Call(id(p.v("ctx")))
}

// ticker writes the link from a timer.
//
//	type everyAudit1s struct {
//		timer piper.Ticker
//		to    *auditInstance
//	}
//
//	func (t *everyAudit1s) Drain(_ int) (n int, err error) {
//		tick, ok := t.timer.Take()
//		if !ok {
//			return 0, nil
//		}
//		x := t.to
//		return 1, x.p.ReceiveTick(tick)
//	}
func (p *part) ticker(q *processor, e *edge) {
	t, tick, ok, n, err, x := p.v("t"), p.v("tick"), p.v("ok"), p.v("n"), p.v("err"), p.v("x")
	h := &handler{part: p, receive: q.receiveHere(e), of: q}
	p.doc("%s sends %s a tick every %v.", e.ticker, q.Name, e.Every)
	p.add(jen.Type().Add(id(e.ticker)).Struct(param("timer", piper("Ticker")), param("to", ptr(q.instance))))
	body := []code{
		jen.List(id(tick), id(ok)).Op(":=").Add(sel(t, "timer", "Take")).Call(),
		jen.If(jen.Op("!").Add(id(ok))).Block(jen.Return(jen.Lit(0), jen.Nil())),
		define(x, sel(t, "to")),
	}
	switch {
	case q.perMessage():
		body = append(body, p.perMessageTick(q, e, h)...)
	case h.Error:
		body = append(body, jen.Return(jen.Lit(1), h.call(id(tick))))
	default:
		body = append(body, h.call(id(tick)), jen.Return(jen.Lit(1), jen.Nil()))
	}
	p.method(t, e.ticker, "Drain", []code{param("_", jen.Int())}, []code{param(n, jen.Int()), param(err, jen.Error())}, body...)
}

// perMessageTick writes the code that handles a tick in a per-message processor.
func (p *part) perMessageTick(q *processor, e *edge, h *handler) (body []code) {
	t, x, tick, err := p.v("t"), p.v("x"), p.v("tick"), p.v("err")
	if q.Watch != nil {
		body = append(body, jen.If(sel(x, "unit", "HasFailed").Call()).Block(sel(t, "timer", "Discard").Call(), jen.Return(jen.Lit(1), jen.Nil())))
	}
	if q.tracksHere() {
		body = append(body, sel(x, "in", q.input(e).ident, "Set").Call(id(tick)))
	}
	argument := id(tick)
	if h.Message == plan.ByPointer {
		argument = ref(tick)
	}
	if !h.Error {
		body = append(body, p.userCallHere(q, &h.Method, nil, argument)...)
	} else {
		body = append(body, p.userCallHere(q, &h.Method, func(call *jen.Statement) code { return set(id(err), call) }, argument)...)
		body = append(body, jen.If(id(err).Op("!=").Nil()).Block(jen.Return(jen.Lit(1), id(err))))
	}
	return append(body, p.received(q, e, x, jen.Lit(1)))
}
