package emit

import (
	"encoding/hex"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
)

// BorderImports lists the packages that generated files import besides where a
// processor is isolated.
func BorderImports() []string { return []string{processPath, wirePath} }

func process(name Ident) *jen.Statement { return jen.Qual(processPath, string(name)) }

// border is what the output has for processors in processes.
type border struct {
	isolated     bool                  // some processor is; else machines keep what the codecs write
	codecs       map[string]wire.Codec // by plan.Edge.Crossing, and by name of replies
	declarations []jen.Code
	link         Ident // what a link that leads out of a process is
	make         Ident // the function that makes the instance of a process
}

// addBorder prepares for processors in processes, where there are some.
func (m *model) addBorder(s *wire.Schema) {
	if s == nil {
		return
	}
	b := &border{codecs: make(map[string]wire.Codec), isolated: slices.ContainsFunc(m.processors, func(q *processor) bool { return q.Isolated() })}
	if b.isolated {
		b.link, b.make = m.scope.top("outsideLink"), m.scope.top("newProcess")
	}
	codecs, declarations := wire.Emit(s, wire.Names{
		Top:   func(name string) string { return string(m.scope.top(mustIdent(name))) },
		Local: func(name string) string { return string(m.scope.local(mustIdent(name))) },
		// Only messages have a limit: the state of a machine may be larger.
		Bounded: b.isolated,
	})
	for i, root := range s.Roots {
		b.codecs[root.Name] = codecs[i]
	}
	b.declarations = declarations
	m.border = b
	for _, q := range m.processors {
		if q.Isolated() {
			q.remote = m.scope.top(q.local + "Remote")
			q.process = m.scope.top(q.local + "Process")
			q.outside = m.scope.top(q.local + "Outside")
			for _, l := range q.links {
				l.outside = m.scope.top(q.local + "To" + l.to.ident + "Outside")
			}
		}
	}
}

// here is the method by which the instance in this process is told, for one of the
// user's: that of the proxy where the processor is isolated.
func (q *processor) here(m *plan.Method) *plan.Method {
	if m == nil || !q.Isolated() {
		return m
	}
	return &plan.Method{Name: m.Name, Error: true}
}

// closedHere is the method that tells of a closed input: a tracker in a process
// has to know, too.
func (q *processor) closedHere() *plan.Method {
	if q.Isolated() && q.Track != nil && q.InputClosed == nil {
		return &plan.Method{Name: "InputClosed", Error: true}
	}
	return q.here(q.InputClosed)
}

// stateHere is the method that tells the tracker in a process what its user has
// heard before.
func (q *processor) stateHere() *plan.Method {
	if !q.Isolated() || q.Track == nil || q.InputClosed == nil {
		return nil
	}
	return &plan.Method{Name: "InputState", Error: true}
}

// tracksHere reports whether the tracker of the inputs is in this process.
func (q *processor) tracksHere() bool { return q.Track != nil && !q.Isolated() }

// remoteReceive is how a proxy takes the messages of an edge.
func (q *processor) remoteReceive(e *edge) *receive {
	user := q.receive(e)
	name := "Receive" + mustIdent(e.Ident)
	return &receive{edge: e, name: name, Method: plan.Method{Name: string(name), Message: plan.ByPointer, Reply: user.Reply, Error: true}}
}

// crossings writes the codecs, and what all isolated processors share.
func (p *part) crossings() {
	if p.border == nil {
		return
	}
	for _, d := range p.border.declarations {
		p.add(d)
	}
	if !p.border.isolated {
		return
	}
	info := p.v("info")
	var cases []code
	for _, q := range p.processors {
		if q.Isolated() {
			cases = append(cases, jen.Case(id(q.constant)).Block(jen.Return(jen.Op("&").Add(id(q.process)).Values(key("info", id(info))))))
		}
	}
	p.doc("Where this program was started for an instance of an isolated processor, it becomes that instance before main, and does not return.")
	p.add(jen.Func().Id("init").Params().Block(
		process("TakeOver").Call(jen.Lit(p.plan.ImportPath), jen.Lit(p.planHash()), id(p.border.make))))
	p.add(jen.Func().Add(id(p.border.make)).Params(param(info, process("Info"))).Add(process("Handler")).Block(
		jen.Switch(id("ProcessorIndex").Call(sel(info, "ProcessorIndex"))).Block(cases...),
		jen.Return(jen.Nil()),
	))
	p.doc("%s is a link that leads out of a process.", p.border.link)
	p.add(jen.Type().Add(id(p.border.link)).Interface(jen.Id("flush").Params(p.sendParam()).Error()))
}

// encode encodes what pointer leads to into the memory of buffer. An error calls it
// what: "" where others say which message it is.
func (p *part) encode(codec wire.Codec, what string, buffer, limit, pointer code) *jen.Statement {
	return process("Encode").Call(jen.Lit(what), buffer, limit, p.encoder(codec, pointer))
}

// encoder is the codec of a message, as a function.
func (p *part) encoder(codec wire.Codec, pointer code) code {
	b, limit := p.v("b"), p.v("limit")
	args, name := []code{id(b), pointer}, id("_")
	if codec.Bounded {
		args, name = append(args, id(limit)), id(limit)
	}
	return jen.Func().Params(param(b, jen.Op("[]byte")), name.Int()).Params(jen.Op("[]byte"), jen.Error()).Block(
		jen.Return(id(mustIdent(codec.Append)).Call(args...)))
}

// fits is the method by which an external sender learns whether a message can cross
// to the process of e's receiver. The ports, which know nothing of codecs, call it.
func (e *edge) fits() Ident { return "fits" + mustIdent(e.Ident) }

// arrow is e as errors name it, like the pool does.
func (e *edge) arrow() string { return e.from.Name + " -> " + e.to.Name + ": " + e.Message }

// border lists the edges to processes from the external processor q.
func (q *processor) border() (list []*edge) {
	for _, l := range q.links {
		for _, e := range l.edges {
			if q.External && e.to.Isolated() {
				list = append(list, e)
			}
		}
	}
	return list
}

// fitting writes the methods of q's joiner that say whether messages can cross.
func (p *part) fitting(q *processor) {
	j, m := p.v("j"), p.v("m")
	for _, e := range q.border() {
		p.doc("%s reports why a message cannot cross to the process of %s, if so.", e.fits(), e.to.Name)
		p.add(jen.Func().Params(id(j).Add(id(q.joiner))).Add(id(e.fits())).Params(param(m, typeCode(e.Type))).Error().Block(
			jen.Return(process("Check").Call(sel(j, "t", "pool", "MessageLimit").Call(), p.encoder(p.border.codecs[e.Crossing()], ref(m))))))
	}
}

// sendParam is the function that takes a message out of a process.
func (p *part) sendParam() code {
	return param(p.v("send"), jen.Func().Params(jen.Id("edge, instance").Int(), jen.Id("payload").Op("[]byte")).Error())
}

// isolated writes both ends of an isolated processor.
func (p *part) isolated(q *processor) {
	p.remoteInstance(q)
	p.remoteMethods(q)
	p.deliver(q)
	p.handlerOf(q)
	for _, l := range q.links {
		p.outsideLink(q, l)
	}
}

// remoteInstance writes how the process of an instance is started and ended.
func (p *part) remoteInstance(q *processor) {
	x, r, err, ctx := p.v("x"), p.v("r"), p.v("err"), p.v("ctx")
	info := process("Info").Values(
		key("Topology", jen.Lit(p.plan.ImportPath)), key("Hash", jen.Lit(p.planHash())), key("Processor", jen.Lit(q.Name)),
		key("ProcessorIndex", index(q.constant)), key("Instance", sel(x, "Index").Call()), key("Instances", jen.Lit(q.Instances)),
		key("MessageLimit", sel(x, "MessageLimit").Call()))
	settings := []code{key("Info", info), key("Logger", sel(x, "Logger").Call()), key("CloseTimeout", sel(x, "CloseTimeout").Call()), key("OnLate", sel(x, "CountKill")),
		key("OnStart", sel(x, "SayProcess")), key("Attempt", sel(x, "Attempt")), key("OnHolds", sel(x, "SetHolds"))}
	if q.Watch.Memory > 0 {
		settings = append(settings, key("Memory", jen.Lit(int(q.Watch.Memory))))
	}
	if q.Watch.Startup > 0 {
		settings = append(settings, key("StartupTimeout", duration(q.Watch.Startup)))
	}
	if q.Watch.Timeout > 0 {
		settings = append(settings, key("OnAlive", sel(x, "Alive")))
	}
	p.doc("%s is an instance of %s in a process of its own, as this process sees it.", q.remote, q.Name)
	p.add(jen.Type().Add(id(q.remote)).Struct(pointer(process("Remote")), param("x", ptr(q.instance))))
	p.doc("start starts the process.")
	p.method(x, q.instance, "start", []code{param(ctx, jen.Qual("context", "Context"))}, []code{ptr(q.remote), jen.Error()},
		jen.List(id(r), id(err)).Op(":=").Add(process("StartRemote")).Call(id(ctx), process("Settings").Add(lines(settings))),
		jen.If(id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err))),
		sel(r, "Cancel").Call(id(ctx)),
		define(p.v("p"), jen.Op("&").Add(id(q.remote)).Values(id(r), id(x))),
		sel(x, "Started").Call(id(p.v("p"))),
		jen.Return(id(p.v("p")), jen.Nil()),
	)
	body := []code{}
	if q.hears() {
		body = append(body, sel(x, "listen").Call())
	}
	body = append(body,
		jen.If(jen.List(sel(x, "p"), id(err)).Op("=").Add(sel(x, "start")).Call(id(ctx)), id(err).Op("==").Nil()).Block(
			sel(x, "Attach").Call(sel(x, "p"))),
		jen.Return(id(err)))
	p.method(x, q.instance, "Init", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Params(param(err, jen.Error()))}, body...)
	p.closer(q)
	adopt := []code{set(sel(x, "p"), id(r)), sel(x, "Attach").Call(id(r))}
	if q.hears() {
		adopt = append(adopt, sel(x, "listen").Call())
	}
	p.doc("Renew starts another process, to take the place of one that has ended.")
	p.method(x, q.instance, "Renew", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Func().Params(), jen.Error()},
		jen.List(id(r), id(err)).Op(":=").Add(sel(x, "start")).Call(id(ctx)),
		jen.If(id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err))),
		jen.Return(jen.Func().Params().Block(adopt...), jen.Nil()),
	)
	if q.Serve == nil {
		return
	}
	serve := sel(x, "p", "Remote", "Serve")
	if !q.CallsTimed() {
		p.short(x, q.instance, "Serve", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()},
			jen.Return(serve.Call(id(ctx), sel(x, "deliver"), sel(x, "out", "out", "Open"), sel(x, "out", "out", "Sent"))))
		return
	}
	life := p.v("life")
	p.method(x, q.instance, "Serve", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()},
		define(life, sel(x, "Enter").Call()),
		jen.Defer().Add(sel(life, "Leave")).Call(),
		jen.Return(serve.Call(id(ctx), sel(x, "deliver"), sel(x, "out", "out", "Open"), jen.Func().Params().Error().Block(
			sel(life, "Leave").Call(), // waiting for room is not hanging
			jen.Defer().Add(sel(life, "Enter")).Call(),
			jen.Return(sel(x, "out", "out", "Sent").Call()),
		))))
}

// planHash is that of the plan, as text.
func (p *part) planHash() string {
	hash := plan.Hash(p.plan)
	return hex.EncodeToString(hash[:])
}

// remoteMethods writes the calls that travel to the process.
func (p *part) remoteMethods(q *processor) {
	r, m, b, err, reply := p.v("r"), p.v("m"), p.v("b"), p.v("err"), p.v("reply")
	for _, receive := range q.receives {
		e := receive.edge
		remote := q.remoteReceive(e)
		codec := p.border.codecs[e.Crossing()]
		encode := []code{
			jen.List(id(b), id(err)).Op(":=").Add(p.encode(codec, "", sel(r, "Buffer").Call(), sel(r, "x", "MessageLimit").Call(), id(m))),
		}
		call := sel(r, "Call").Call(process("Receive"), index(e.constant), id(b), sel(r, "x", "deliver"))
		p.doc("%s has the process handle a message.", remote.name)
		if !remote.Reply {
			p.method(r, q.remote, remote.name, []code{param(m, pointer(typeCode(e.Type)))}, []code{jen.Error()}, append(encode,
				jen.If(id(err).Op("==").Nil()).Block(jen.List(jen.Id("_"), id(err)).Op("=").Add(call)),
				jen.Return(id(err)))...)
			continue
		}
		answer := p.border.codecs[e.Reply]
		p.method(r, q.remote, remote.name, []code{param(m, pointer(typeCode(e.Type)))}, []code{param(reply, typeCode(e.ReplyType)), param(err, jen.Error())},
			append(encode,
				jen.If(id(err).Op("==").Nil()).Block(jen.List(id(b), id(err)).Op("=").Add(call)),
				jen.If(id(err).Op("==").Nil()).Block(set(id(err), id(mustIdent(answer.Consume)).Call(id(b), ref(reply)))),
				jen.Return(id(reply), id(err)))...)
	}
	simple := func(name Ident, params []code, edge, payload code) {
		p.method(r, q.remote, name, params, []code{jen.Error()},
			jen.List(jen.Id("_"), id(err)).Op(":=").Add(sel(r, "Call")).Call(process(name), edge, payload, sel(r, "x", "deliver")),
			jen.Return(id(err)))
	}
	in, whom := p.v("in"), p.v("p")
	if q.Ping != nil {
		simple("Ping", nil, jen.Lit(0), jen.Nil())
	}
	if q.Finish != nil {
		simple("Finish", nil, jen.Lit(0), jen.Nil())
	}
	if q.closedHere() != nil {
		state := jen.Op("[]byte").Values(jen.Byte().Call(sel(r, "x", "inputs", "State").Call(jen.Int().Call(id(in)))))
		simple("InputClosed", []code{param(in, id(q.inputType()))}, jen.Int().Call(id(in)), state)
	}
	if q.stateHere() != nil {
		state := jen.Op("[]byte").Values(jen.Byte().Call(sel(r, "x", "inputs", "State").Call(jen.Int().Call(id(in)))))
		simple("InputState", []code{param(in, id(q.inputType()))}, jen.Int().Call(id(in)), state)
	}
	if q.InputRecovered != nil {
		simple("InputRecovered", []code{param(in, id(q.inputType()))}, jen.Int().Call(id(in)), jen.Nil())
	}
	if q.ProcessorRestarted != nil {
		simple("ProcessorRestarted", []code{param(whom, id("ProcessorIndex"))}, jen.Int().Call(id(whom)), jen.Nil())
	}
	if q.AllInputsClosed != nil {
		simple("AllInputsClosed", nil, jen.Lit(0), jen.Nil())
	}
}

// deliver writes what takes the messages that the process has sent.
func (p *part) deliver(q *processor) {
	x, m, err, i := p.v("x"), p.v("m"), p.v("err"), p.v("instance")
	var cases []code
	for _, l := range q.links {
		for _, e := range l.edges {
			if e.ask != nil || e.DeadLetter {
				continue
			}
			codec := p.border.codecs[e.Crossing()]
			get := sel(x, "out", l.getter)
			if l.many() {
				get.Call(id(i))
			} else {
				get.Call()
			}
			puts := p.put(e, get, id(m))
			if l.Sequenced {
				link := p.v("l")
				puts = append([]code{define(link, get)}, p.put(e, id(link), id(m))...)
			}
			cases = append(cases, jen.Case(id(e.constant)).Block(
				jen.Var().Add(id(m)).Add(typeCode(e.Type)),
				jen.If(define(err, id(mustIdent(codec.Consume)).Call(id(p.v("payload")), ref(m))), id(err).Op("!=").Nil().Op("||").Op("!").Add(id(p.v("put")))).Block(jen.Return(id(err))),
				jen.If(id(i).Op("<").Lit(0).Op("||").Add(id(i)).Op(">=").Lit(e.to.Instances)).Block(jen.Return(sel(x, "out", "out", "NoInstance").Call(index(e.constant)))),
				row(jen.Block(puts...)),
				jen.Return(jen.Nil()),
			))
		}
	}
	edge := p.v("edge")
	params := []code{id(edge).Op(",").Add(param(i, jen.Int())), param(p.v("payload"), jen.Op("[]byte")), param(p.v("put"), jen.Bool())}
	p.doc("deliver takes a message that the process has sent, and checks it; where put is true it sends it on.")
	var body []code
	if len(cases) > 0 {
		body = append(body, jen.Switch(id("EdgeIndex").Call(id(edge))).Block(cases...))
	}
	p.method(x, q.instance, "deliver", params, []code{jen.Error()}, append(body, jen.Return(process("ErrProtocol")))...)
}

// handlerOf writes the instance in its process.
func (p *part) handlerOf(q *processor) {
	c, err, ctx, a := p.v("c"), p.v("err"), p.v("ctx"), p.v("a")
	fields := []code{param("info", process("Info")), param("outside", pool("Outside")), param("p", pointer(typeCode(q.typ)))}
	var start []code
	how := p.standard(q)
	if q.Track != nil {
		fields = append(fields, param("in", id(q.trackerType())))
		construct := p.v("construct")
		start = append(start, define(construct, how))
		how = p.tracking(q, id(construct), ref(c, "in"))
	}
	start = append(start,
		jen.List(sel(c, "p"), id(err)).Op("=").Add(pool("Construct")).Call(
			topo("Instance").Values(key("Processor", jen.Lit(q.Name)), key("Index", sel(c, "info", "Instance")), key("Number", jen.Lit(q.Instances))),
			how),
		jen.If(id(err).Op("!=").Nil()).Block(jen.Return(id(err))),
	)
	if q.sender != "" {
		fields = append(fields, param("out", id(q.sender)), param("links", jen.Index().Add(id(p.border.link))))
		start = append(start, sel(c, "outside", "Init").Call(ref(c, "out", "out"), sel(c, "info", "Instance")), set(sel(c, "out", "links"), id(q.outside).Values(id(c))))
	}
	if p.replies(q) {
		fields = append(fields, param("b", jen.Op("[]byte")))
	}
	last, ctxName := jen.Return(jen.Nil()), p.v("_")
	if q.Init != nil {
		var args []code
		if q.Init.Context {
			args, ctxName = []code{id(ctx)}, ctx
		}
		last = jen.Return(sel(c, "p", "Init").Call(args...))
	}
	p.doc("%s is an instance of %s in its process.", q.process, q.Name)
	p.add(jen.Type().Add(id(q.process)).Struct(fields...))
	context := func(name Ident) code { return param(name, jen.Qual("context", "Context")) }
	p.method(c, q.process, "Start", []code{context(ctxName)}, []code{jen.Params(param(err, jen.Error()))}, append(start, last)...)
	p.handlerCall(q)
	p.handlerServe(q)
	if q.Close != nil {
		p.short(c, q.process, "Close", nil, []code{jen.Error()}, jen.Return(sel(c, "p", "Close").Call()))
	} else {
		p.short(c, q.process, "Close", nil, []code{jen.Error()}, jen.Return(jen.Nil()))
	}
	if q.sender == "" {
		return
	}
	l := p.v("l")
	p.doc("flush passes on what the instance has sent.")
	p.method(c, q.process, "flush", []code{p.sendParam()}, []code{jen.Params(param(err, jen.Error()))},
		jen.For(jen.List(jen.Id("_"), id(l)).Op(":=").Range().Add(sel(c, "links"))).Block(
			jen.If(define(a, sel(l, "flush").Call(id(p.v("send")))), id(err).Op("==").Nil()).Block(set(id(err), id(a)))),
		jen.Return(id(err)),
	)
}

// replies reports whether a handler of q replies.
func (p *part) replies(q *processor) bool {
	return slices.ContainsFunc(q.receives, func(r *receive) bool { return r.edge.Reply != "" })
}

// userCall calls a method of the user's in the process.
func (p *part) userCall(q *processor, method *plan.Method, message ...code) *jen.Statement {
	c := p.v("c")
	var args []code
	if method.Context {
		args = append(args, id(p.v("ctx")))
	}
	args = append(args, message...)
	switch method.Out {
	case plan.NoOut:
	case plan.AdaptedOut:
		args = append(args, id(q.adapter(method).name).Values(ref(c, "out")))
	default:
		args = append(args, ref(c, "out"))
	}
	return sel(c, "p", mustIdent(method.Name)).Call(args...)
}

// handlerCall writes how the process handles a call.
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
		codec := p.border.codecs[e.Crossing()]
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
			answer := p.border.codecs[e.Reply]
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
		var cases []code
		for _, in := range q.inputs {
			cases = append(cases, jen.Case(id(in.constant)).Block(sel(c, "in", in.ident, "Became").Call(supervise("State").Call(id(b)))))
		}
		became = []code{jen.For(jen.List(jen.Id("_"), id(b)).Op(":=").Range().Add(id(payload))).Block(jen.Switch(id(q.inputType()).Call(edge)).Block(cases...))}
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
			jen.If(sel(c, "outside", "Begin").Call(ref(c, "out", "out"))).Block(jen.Id("_").Op("=").Add(sel(c, "flush").Call(pool("DropLate")))),
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

// handlerServe writes how the process runs Serve.
func (p *part) handlerServe(q *processor) {
	c, ctx := p.v("c"), p.v("ctx")
	params := []code{param(ctx, jen.Qual("context", "Context")), p.sendParam()}
	if q.Serve == nil || q.sender == "" {
		params[0] = param("_", jen.Qual("context", "Context"))
		p.short(c, q.process, "Serve", params, []code{jen.Error()}, jen.Return(process("ErrProtocol")))
		return
	}
	p.method(c, q.process, "Serve", params, []code{jen.Error()},
		jen.Defer().Add(sel(c, "outside", "Serve")).Call(ref(c, "out", "out"), jen.Func().Params().Error().Block(jen.Return(sel(c, "flush").Call(id(p.v("send")))))).Call(),
		jen.Return(p.userCall(q, q.Serve)),
	)
}

// outsideLink writes a link from the process of q.
func (p *part) outsideLink(q *processor, l *link) {
	v, c, i, err, o, batch := p.v("l"), p.v("c"), p.v("i"), p.v("err"), p.v("o"), p.v("batch")
	if l == q.links[0] {
		p.doc("%s makes the links that lead out of the process.", q.outside)
		p.add(jen.Type().Add(id(q.outside)).Struct(param("c", ptr(q.process))))
	}
	p.doc("%s leads from the process to an instance of %s.", l.outside, l.to.Name)
	p.add(jen.Type().Add(id(l.outside)).Struct(id(l.name), param("instance", jen.Int()), param("limit", jen.Int()), param("buffer", jen.Op("[]byte"))))
	params := p.joinParams(l)
	params[0] = param("_", ptr(l.from.sender))
	instance := jen.Lit(0)
	if l.many() {
		instance = id(i)
	}
	body := []code{define(v, jen.Op("&").Add(id(l.outside)).Values(key("instance", instance), key("limit", sel(c, "c", "info", "MessageLimit"))))}
	var heads []code
	for _, e := range l.edges {
		body = append(body, sel(v, e.field, "Init").Call(index(e.constant), pool("OutsideCapacity"), ref(v, "Link")))
		heads = append(heads, ref(v, e.field, "Head"))
	}
	body = append(body,
		sel(v, "Outside").Call(append([]code{ref(c, "c", "out", "out")}, heads...)...),
		set(sel(c, "c", "links"), jen.Append(sel(c, "c", "links"), id(v))),
		jen.Return(ref(v, l.name)))
	p.add(jen.Func().Params(id(c).Add(id(q.outside))).Add(id(l.getter)).Params(params...).Add(ptr(l.name)).Block(body...))
	take := func(e *edge, m code) []code {
		codec := p.border.codecs[e.Crossing()]
		if codec.Append == "" { // replies and dead letters are sent by the parent
			return nil
		}
		return []code{
			jen.If(id(err).Op("==").Nil()).Block(
				jen.List(sel(v, "buffer"), id(err)).Op("=").Add(p.encode(codec, e.arrow(), sel(v, "buffer"), sel(v, "limit"), m))),
			jen.If(id(err).Op("==").Nil()).Block(set(id(err), id(p.v("send")).Call(index(e.constant), sel(v, "instance"), sel(v, "buffer")))),
		}
	}
	m, ok, number := p.v("m"), p.v("ok"), p.v("number")
	var loop []code
	switch e := l.edges[0]; {
	case l.Sequenced:
		loop = append(loop, define(o, sel(v, "Order").Call()))
		var cases []code
		for _, e := range l.edges {
			if e.latest() {
				loop = append(loop, jen.If(jen.List(id(number), id(ok)).Op(":=").Add(sel(v, e.field, "First")).Call(), id(ok)).Block(sel(o, "See").Call(index(e.constant), id(number))))
				cases = append(cases, jen.Case(id(e.constant)).Block(append([]code{jen.List(id(m), jen.Id("_")).Op(":=").Add(sel(v, e.field, "Take")).Call(sel(o, "N"))}, take(e, ref(m))...)...))
				continue
			}
			loop = append(loop, jen.If(define(batch, sel(v, e.field, "Peek").Call(jen.Lit(1))), jen.Len(id(batch)).Op(">").Lit(0)).Block(
				sel(o, "See").Call(index(e.constant), id(batch).Index(jen.Lit(0)).Dot("N"))))
			statements := take(e, ref(batch).Index(jen.Lit(0)).Dot("M"))
			if statements != nil {
				statements = append([]code{define(batch, sel(v, e.field, "Peek").Call(jen.Lit(1)))}, statements...)
			}
			cases = append(cases, jen.Case(id(e.constant)).Block(append(statements, sel(v, e.field, "Release").Call(jen.Lit(1)))...))
		}
		loop = append(loop, jen.Switch(id("EdgeIndex").Call(sel(o, "Edge"))).Block(append(cases, jen.Default().Block(jen.Return(id(err))))...))
	case e.latest():
		loop = append([]code{
			jen.List(id(m), id(ok)).Op(":=").Add(sel(v, e.field, "Pop")).Call(),
			jen.If(jen.Op("!").Add(id(ok))).Block(jen.Return(id(err))),
		}, take(e, ref(m))...)
	default:
		loop = append([]code{
			define(batch, sel(v, e.field, "Peek").Call(jen.Lit(1))),
			jen.If(jen.Len(id(batch)).Op("==").Lit(0)).Block(jen.Return(id(err))),
		}, take(e, ref(batch).Index(jen.Lit(0)))...)
		loop = append(loop, sel(v, e.field, "Release").Call(jen.Lit(1)))
	}
	p.doc("flush passes on what was sent along the link, in order.")
	p.method(v, l.outside, "flush", []code{p.sendParam()}, []code{jen.Params(param(err, jen.Error()))},
		sel(v, "Flush").Call(),
		jen.For().Block(loop...),
	)
}
