package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// handlerOf writes the instance as its own process runs it.
//
//	type skippingProcess struct {
//		info    process.Info
//		outside piper.IsolatedPool
//		p       *Doer
//		out     SkippingSender
//		links   []outsideLink
//		b       []byte
//	}
//
//	func (c *skippingProcess) Start(_ context.Context) (err error) {
//		c.p, err = piper.Construct(c.info.Identity(), nil, func(in topo.Instance) (*Doer, error) {
//			return NewDoer(in)
//		})
//		if err != nil {
//			return err
//		}
//		c.outside.Init(&c.out.out, c.info.Instance, skippingOutside{c})
//		return c.p.Init()
//	}
func (p *part) handlerOf(q *processor) {
	c, err, a := p.v("c"), p.v("err"), p.v("a")
	fields := []code{param("info", process("Info")), param("outside", piper("IsolatedPool")), param("p", pointer(typeCode(q.Type)))}
	var start []code
	how := p.standard(q)
	if q.Track != nil {
		fields = append(fields, param("in", id(q.trackerType())))
		construct := p.v("construct")
		start = append(start, define(construct, how))
		how = p.tracking(q, id(construct), ref(c, "in"))
	}
	start = append(start,
		jen.List(sel(c, "p"), id(err)).Op("=").Add(piper("Construct")).Call(
			sel(c, "info", "Identity").Call(),
			jen.Nil(), how),
		jen.If(id(err).Op("!=").Nil()).Block(jen.Return(id(err))),
	)
	if q.sender != "" {
		fields = append(fields, param("out", id(q.sender)), param("links", jen.Index().Add(id(p.boundary.link))))
		start = append(start, sel(c, "outside", "Init").Call(ref(c, "out", "out"), sel(c, "info", "Instance"), id(q.outside).Values(id(c))))
	}
	if slices.ContainsFunc(q.receives, func(r *receive) bool { return r.edge.Reply != "" }) {
		fields = append(fields, param("b", jen.Op("[]byte")))
	}
	ctx, call := p.initCall(q, c+".p")
	if call == nil {
		call = jen.Nil()
	}
	p.doc("%s is an instance of %s in its own process.", q.process, q.Name)
	p.add(jen.Type().Add(id(q.process)).Struct(fields...))
	p.method(c, q.process, "Start", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Params(param(err, jen.Error()))}, append(start, jen.Return(call))...)
	p.handlerCall(q)
	p.handlerServe(q)
	closed := jen.Nil()
	if q.Close != nil {
		closed = sel(c, "p", "Close").Call()
	}
	p.short(c, q.process, "Close", nil, []code{jen.Error()}, jen.Return(closed))
	if q.sender == "" {
		return
	}
	l := p.v("l")
	body := []code{jen.For(jen.List(jen.Id("_"), id(l)).Op(":=").Range().Add(sel(c, "links"))).Block(
		jen.If(define(a, sel(l, "flush").Call(id(p.v("send")))), id(err).Op("==").Nil()).Block(set(id(err), id(a))))}
	if slices.ContainsFunc(q.sends, func(s *send) bool { return slices.ContainsFunc(s.edges, (*edge).missesOutside) }) {
		body = append(body, jen.If(define(a, sel(c, "outside", "FlushMissed").Call(id(p.v("send")))), id(err).Op("==").Nil()).Block(set(id(err), id(a))))
	}
	p.doc("flush passes the messages that the instance has sent to %s.", p.v("send"))
	p.method(c, q.process, "flush", []code{p.sendParam()}, []code{jen.Params(param(err, jen.Error()))},
		append(body, jen.Return(id(err)))...,
	)
}

// userCall is a call of a method of the user's type in the process.
func (p *part) userCall(q *processor, method *plan.Method, message ...code) *jen.Statement {
	c := p.v("c")
	return sel(c, "p", mustIdent(method.Name)).Call(arguments(method, id(p.v("ctx")), q.outArgument(method, ref(c, "out")), message...)...)
}

// handlerCall writes the method by which the process handles a call.
//
//	func (c *skippingProcess) Call(ctx context.Context, kind process.Kind, edge int, payload []byte, a *process.AnswerBuilder) (err error) {
//		if c.outside.Begin(&c.out.out) {
//			_ = c.flush(piper.DropLate)
//		}
//		defer c.outside.End(&c.out.out)
//		switch kind {
//		case process.Receive:
//			switch EdgeIndex(edge) {
//			case EdgeApiSkippingOrder:
//				var m Order
//				if err = consumeOrder(payload, &m); err != nil {
//					return process.Undecodable(err)
//				}
//				…
//			}
//		default:
//			return process.ErrProtocol
//		}
//		…
//		return err
//	}
func (p *part) handlerCall(q *processor) {
	c, err, m, a, reply, b := p.v("c"), p.v("err"), p.v("m"), p.v("a"), p.v("reply"), p.v("b")
	payload, edge := p.v("payload"), id(p.v("edge"))
	statement := func(method *plan.Method, call *jen.Statement) code {
		if method.Error {
			return set(id(err), call)
		}
		return call
	}
	var edges, kinds []code
	for _, r := range q.receives {
		e := r.edge
		codec := p.boundary.codecs[e.Crossing()]
		body := []code{
			jen.Var().Add(id(m)).Add(typeCode(e.Type)),
			jen.If(set(id(err), id(mustIdent(codec.Consume)).Call(id(payload), ref(m))), id(err).Op("!=").Nil()).Block(
				jen.Return(process("Undecodable").Call(id(err)))),
		}
		if q.Track != nil {
			body = append(body, sel(c, "in", q.input(e).ident, "Set").Call(id(m)))
		}
		argument := id(m)
		if r.Message == plan.ByPointer {
			argument = ref(m)
		}
		call := p.userCall(q, &r.Method, argument)
		if !r.Reply {
			body = append(body, statement(&r.Method, call))
		} else {
			answer := p.boundary.codecs[e.Reply]
			give := []code{jen.If(
				jen.List(sel(c, "b"), id(err)).Op("=").Add(p.encode(answer, "the answer "+e.Reply, sel(c, "b"), sel(c, "info", "MessageLimit"), ref(reply))),
				id(err).Op("==").Nil(),
			).Block(sel(a, "Reply").Call(sel(c, "b")))}
			body = append(body, jen.Var().Add(id(reply)).Add(typeCode(e.ReplyType)))
			if r.Error {
				body = append(body, jen.If(jen.List(id(reply), id(err)).Op("=").Add(call), id(err).Op("==").Nil()).Block(give...))
			} else {
				body = append(append(body, set(id(reply), call)), give...)
			}
		}
		edges = append(edges, jen.Case(id(e.constant)).Block(body...))
	}
	if len(edges) > 0 {
		edges = append(edges, jen.Default().Block(jen.Return(process("ErrProtocol"))))
		kinds = append(kinds, jen.Case(process("Receive")).Block(jen.Switch(id("EdgeIndex").Call(edge)).Block(edges...)))
	}
	add := func(name Ident, method *plan.Method, before []code, argument ...code) {
		if method == nil && before == nil {
			return
		}
		if method != nil {
			before = append(before, statement(method, p.userCall(q, method, argument...)))
		}
		kinds = append(kinds, jen.Case(process(name)).Block(before...))
	}
	var became []code
	if q.Track != nil {
		became = []code{jen.For(jen.List(jen.Id("_"), id(b)).Op(":=").Range().Add(id(payload))).Block(
			sel(c, "in", "became").Call(id(q.inputType()).Call(edge), supervise("State").Call(id(b))))}
	}
	add("Ping", q.Ping, nil)
	add("Finish", q.Finish, nil)
	if len(q.inputs) > 0 {
		add("InputClosed", q.InputClosed, became, id(q.inputType()).Call(edge))
		if q.stateHere() != nil {
			add("InputState", nil, became)
		}
		add("InputRecovered", q.InputRecovered, nil, id(q.inputType()).Call(edge))
		add("ProcessorRestarted", q.ProcessorRestarted, nil, id("ProcessorIndex").Call(edge))
		add("AllInputsClosed", q.AllInputsClosed, nil)
	}
	if len(kinds) == 0 {
		p.method(c, q.process, "Call", []code{
			jen.Qual("context", "Context"), process("Kind"), jen.Int(), jen.Op("[]byte"), pointer(process("AnswerBuilder")),
		}, []code{jen.Error()}, jen.Return(process("ErrProtocol")))
		return
	}
	kinds = append(kinds, jen.Default().Block(jen.Return(process("ErrProtocol"))))
	body := []code{jen.Switch(id(p.v("kind"))).Block(kinds...)}
	if q.sender != "" {
		body = append([]code{
			jen.If(sel(c, "outside", "Begin").Call(ref(c, "out", "out"))).Block(jen.Id("_").Op("=").Add(sel(c, "flush").Call(piper("DropLate")))),
			jen.Defer().Add(sel(c, "outside", "End")).Call(ref(c, "out", "out")),
		}, body...)
		f := p.v("failed")
		body = append(body, jen.If(define(f, sel(c, "flush").Call(jen.Func().Params(jen.Id("edge, instance").Int(), jen.Id("payload").Op("[]byte")).Error().Block(
			sel(a, "Send").Call(jen.Id("edge"), jen.Id("instance"), jen.Id("payload")),
			jen.Return(jen.Nil()),
		))), id(f).Op("!=").Nil()).Block(jen.Return(id(f))))
	}
	p.method(c, q.process, "Call",
		[]code{
			param(p.v("ctx"), jen.Qual("context", "Context")), param(p.v("kind"), process("Kind")), param(p.v("edge"), jen.Int()),
			param(payload, jen.Op("[]byte")), param(a, pointer(process("AnswerBuilder"))),
		},
		[]code{jen.Params(param(err, jen.Error()))}, append(body, jen.Return(id(err)))...)
}

// handlerServe writes the method by which the process runs Serve.
//
//	func (c *sourceProcess) Serve(ctx context.Context, send func(process.Flush) error) error {
//		defer c.outside.Serve(&c.out.out, func() error {
//			return send(c.flush)
//		})()
//		return c.p.Serve(ctx, &c.out)
//	}
func (p *part) handlerServe(q *processor) {
	c, ctx := p.v("c"), p.v("ctx")
	send := p.v("send")
	params := []code{param(ctx, jen.Qual("context", "Context")), param(send, jen.Func().Params(process("Flush")).Error())}
	if q.Serve == nil || q.sender == "" {
		params[0] = param("_", jen.Qual("context", "Context"))
		p.short(c, q.process, "Serve", params, []code{jen.Error()}, jen.Return(process("ErrProtocol")))
		return
	}
	p.method(c, q.process, "Serve", params, []code{jen.Error()},
		jen.Defer().Add(sel(c, "outside", "Serve")).Call(ref(c, "out", "out"), jen.Func().Params().Error().Block(jen.Return(id(send).Call(sel(c, "flush"))))).Call(),
		jen.Return(p.userCall(q, q.Serve)),
	)
}

// outsideLinks writes the links out of the process of q.
//
//	func (c skippingOutside) Link(_, _ int) {
//		l := &skippingToCollectorOutside{instance: 0, limit: c.c.info.MessageLimit}
//		l.link.JoinIsolated(&c.c.out.out, queue.Init(&l.parcel, int(EdgeSkippingCollectorParcel), piper.IsolatedCapacity, &l.link))
//		c.c.links = append(c.c.links, l)
//		c.c.out.collector = &l.parcel
//	}
func (p *part) outsideLinks(q *processor) {
	if len(q.links) == 0 {
		return
	}
	c, v := p.v("c"), p.v("l")
	p.doc("%s makes the links out of the process.", q.outside)
	p.add(jen.Type().Add(id(q.outside)).Struct(param("c", ptr(q.process))))
	out := c + ".c.out"
	p.linkMethod(q, jen.Func().Params(id(c).Add(id(q.outside))), out, nil, func(l *link) []code {
		heads := []code{jen.Op("&").Add(sel(out, "out"))}
		for _, e := range l.edges {
			heads = append(heads, queue("Init").Call(ref(v, e.field), index(e.constant), piper("IsolatedCapacity"), ref(v, "link")))
		}
		sent := ref(v, l.name)
		if l.single() {
			sent = ref(v, l.edges[0].field)
		}
		return []code{
			define(v, jen.Op("&").Add(id(l.outside)).Values(key("instance", p.instanceOf(l)), key("limit", sel(c, "c", "info", "MessageLimit")))),
			sel(v, "link", "JoinIsolated").Call(heads...),
			set(sel(c, "c", "links"), jen.Append(sel(c, "c", "links"), id(v))),
			p.setLink(out, l, sent),
		}
	})
	for _, l := range q.links {
		p.outsideLink(q, l)
	}
}

// outsideLink writes a link out of the process of q.
//
//	func (l *skippingToCollectorOutside) flush(send func(edge, instance int, payload []byte) error) (err error) {
//		l.link.Flush()
//		for {
//			batch := queue.Peek(&l.parcel, 1)
//			if len(batch) == 0 {
//				return err
//			}
//			…
//			if err == nil {
//				err = send(int(EdgeSkippingCollectorParcel), l.instance, l.buffer)
//			}
//			l.parcel.Head.Release(1)
//		}
//	}
func (p *part) outsideLink(q *processor, l *link) {
	v, err, o, batch := p.v("l"), p.v("err"), p.v("o"), p.v("batch")
	p.doc("%s is a link from the process to an instance of %s.", l.outside, l.to.Name)
	p.add(jen.Type().Add(id(l.outside)).Struct(append(l.receiverFields(), param("instance", jen.Int()), param("limit", jen.Int()), param("buffer", jen.Op("[]byte")))...))
	take := func(e *edge, element *jen.Statement) []code {
		m := jen.Op("&").Add(e.inside(element))
		codec := p.boundary.codecs[e.Crossing()]
		if codec.Append == "" { // replies and dead letters are sent by the parent
			return nil
		}
		return []code{
			jen.If(id(err).Op("==").Nil()).Block(
				jen.List(sel(v, "buffer"), id(err)).Op("=").Add(p.encode(codec, p.plan.EdgeText(e.index), sel(v, "buffer"), sel(v, "limit"), m))),
			jen.If(id(err).Op("==").Nil()).Block(set(id(err), id(p.v("send")).Call(index(e.constant), sel(v, "instance"), sel(v, "buffer")))),
		}
	}
	m, ok := p.v("m"), p.v("ok")
	var loop []code
	switch e := l.edges[0]; {
	case l.Sequenced:
		loop = p.findFirst(l)
		var cases []code
		for _, e := range l.edges {
			if e.latest() {
				cases = append(cases, jen.Case(id(e.constant)).Block(append([]code{jen.List(id(m), jen.Id("_")).Op(":=").Add(sel(v, e.field, "Take")).Call(sel(o, "N"))}, take(e, id(m))...)...))
				continue
			}
			statements := take(e, id(batch).Index(jen.Lit(0)).Dot("M"))
			if statements != nil {
				statements = append([]code{define(batch, peek(v, e.field, jen.Lit(1)))}, statements...)
			}
			cases = append(cases, jen.Case(id(e.constant)).Block(append(statements, sel(v, e.field, "Head", "Release").Call(jen.Lit(1)))...))
		}
		loop = append(loop, jen.Switch(id("EdgeIndex").Call(sel(o, "Edge"))).Block(append(cases, jen.Default().Block(jen.Return(id(err))))...))
	case e.latest():
		loop = append([]code{
			jen.List(id(m), id(ok)).Op(":=").Add(sel(v, e.field, "Pop")).Call(),
			jen.If(jen.Op("!").Add(id(ok))).Block(jen.Return(id(err))),
		}, take(e, id(m))...)
	default:
		loop = append([]code{
			define(batch, peek(v, e.field, jen.Lit(1))),
			jen.If(jen.Len(id(batch)).Op("==").Lit(0)).Block(jen.Return(id(err))),
		}, take(e, id(batch).Index(jen.Lit(0)))...)
		loop = append(loop, sel(v, e.field, "Head", "Release").Call(jen.Lit(1)))
	}
	p.doc("flush passes the messages of the link to %s, in order.", p.v("send"))
	p.method(v, l.outside, "flush", []code{p.sendParam()}, []code{jen.Params(param(err, jen.Error()))},
		sel(v, "link", "Flush").Call(),
		jen.For().Block(loop...),
	)
}
