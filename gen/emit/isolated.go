package emit

import (
	"encoding/hex"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
)

func process(name Ident) *jen.Statement { return jen.Qual(processPath, string(name)) }

// boundary holds the parts of the output for processors in processes of their own.
type boundary struct {
	schema       *wire.Schema
	isolated     bool                  // some processor is isolated
	codecs       map[string]wire.Codec // by plan.Edge.Crossing, and by name of replies
	declarations []jen.Code
	link         Ident // the interface of a link out of a process
	make         Ident // the function that makes the instance of a process

	encoders map[string]Ident // with a cluster: the functions that encode messages to other nodes, by name
}

// addBoundary adds the boundary to the model if s is not nil.
func (m *model) addBoundary(s *wire.Schema) {
	if s == nil {
		return
	}
	b := &boundary{schema: s, codecs: make(map[string]wire.Codec), isolated: slices.ContainsFunc(m.processors, func(q *processor) bool { return q.Isolated() })}
	if b.isolated {
		b.link, b.make = m.scope.top("outsideLink"), m.scope.top("newProcess")
	}
	codecs, declarations := wire.Emit(s, wire.Names{
		Top:   func(name string) string { return string(m.scope.top(mustIdent(name))) },
		Local: func(name string) string { return string(m.scope.local(mustIdent(name))) },
		// Only messages have a limit: the state of a state machine may be larger.
		Bounded: b.isolated || m.plan.Cluster != nil,
		States:  m.states(),
	})
	for i, root := range s.Roots {
		b.codecs[root.Name] = codecs[i]
	}
	b.declarations = declarations
	m.boundary = b
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

// states returns the state types of the state machines with a log. The value is true if the type
// is also the type of a message, an update or a result.
func (m *model) states() map[string]bool {
	states, sent := make(map[string]bool), make(map[string]bool)
	for i := range m.plan.Edges {
		e := &m.plan.Edges[i]
		sent[e.Crossing()], sent[e.Reply] = true, true
	}
	for _, q := range m.processors {
		if q.Machine.Writes() {
			sent[q.Machine.Update], sent[q.Machine.Result] = true, true
		}
	}
	for _, q := range m.processors {
		if q.Machine.Writes() {
			states[q.Machine.State] = sent[q.Machine.State]
		}
	}
	return states
}

// here is the method that the instance in this process calls for the user's method m: m
// itself, or the method of the proxy if the processor is isolated.
func (q *processor) here(m *plan.Method) *plan.Method {
	if m == nil || !q.Isolated() {
		return m
	}
	return &plan.Method{Name: m.Name, Error: true}
}

// closedHere is the method that reports a closed input. A tracker in another process
// needs it even if the user has no such method.
func (q *processor) closedHere() *plan.Method {
	if q.Isolated() && q.Track != nil && q.InputClosed == nil {
		return &plan.Method{Name: "InputClosed", Error: true}
	}
	return q.here(q.InputClosed)
}

// stateHere is the method that sets the state of an input in the tracker of another
// process without a second call of the user's InputClosed.
func (q *processor) stateHere() *plan.Method {
	if !q.Isolated() || q.Track == nil || q.InputClosed == nil {
		return nil
	}
	return &plan.Method{Name: "InputState", Error: true}
}

// tracksHere reports whether the tracker of the inputs is in this process.
func (q *processor) tracksHere() bool { return q.Track != nil && !q.Isolated() }

// receiveHere is the handler of an edge in this process. For an isolated processor it is a
// method of the proxy.
func (q *processor) receiveHere(e *edge) *receive {
	r := q.receive(e)
	if !q.Isolated() {
		return r
	}
	name := "Receive" + mustIdent(e.Ident)
	return &receive{edge: e, name: name, Method: plan.Method{Name: string(name), Message: plan.ByPointer, Reply: r.Reply, Error: true}}
}

// crossings writes the codecs, and the declarations that all isolated processors share.
//
//	func newProcess(info process.Info) process.Handler {
//		switch ProcessorIndex(info.ProcessorIndex) {
//		case ProcessorWorker:
//			return &workerProcess{info: info}
//		…
//		return nil
//	}
func (p *part) crossings() {
	if p.boundary == nil {
		return
	}
	for _, d := range p.boundary.declarations {
		p.add(d)
	}
	p.encoders()
	if !p.boundary.isolated {
		return
	}
	info := p.v("info")
	var cases []code
	for _, q := range p.processors {
		if q.Isolated() {
			cases = append(cases, jen.Case(id(q.constant)).Block(jen.Return(jen.Op("&").Add(id(q.process)).Values(key("info", id(info))))))
		}
	}
	p.doc("If this program was started as the process of an isolated instance, TakeOver runs that instance before main and does not return.")
	p.add(jen.Func().Id("init").Params().Block(
		process("TakeOver").Call(jen.Lit(p.plan.ImportPath), jen.Lit(p.planHash()), id(p.boundary.make))))
	p.add(jen.Func().Add(id(p.boundary.make)).Params(param(info, process("Info"))).Add(process("Handler")).Block(
		jen.Switch(id("ProcessorIndex").Call(sel(info, "ProcessorIndex"))).Block(cases...),
		jen.Return(jen.Nil()),
	))
	p.doc("%s is a link out of an isolated process.", p.boundary.link)
	p.add(jen.Type().Add(id(p.boundary.link)).Interface(jen.Id("flush").Params(p.sendParam()).Error()))
}

// encode encodes the value at pointer into the memory of buffer. Errors name the value with
// what, which is "" if the caller of the generated code adds the name.
func (p *part) encode(codec wire.Codec, what string, buffer, limit, pointer code) *jen.Statement {
	return process("Encode").Call(jen.Lit(what), buffer, limit, p.encoder(codec, pointer))
}

// encoder is a function literal that encodes a message.
func (p *part) encoder(codec wire.Codec, pointer code) code {
	b, limit := p.v("b"), p.v("limit")
	args, name := []code{id(b), pointer}, id("_")
	if codec.Bounded {
		args, name = append(args, id(limit)), id(limit)
	}
	return jen.Func().Params(param(b, jen.Op("[]byte")), name.Int()).Params(jen.Op("[]byte"), jen.Error()).Block(
		jen.Return(id(mustIdent(codec.Append)).Call(args...)))
}

// fits is the method by which an external sender checks that a message can be sent to the
// process of e's receiver. The ports call it through an interface, because they have no codecs.
func (e *edge) fits() Ident { return "fits" + mustIdent(e.Ident) }

// crossingEdges lists the edges to isolated processors from the external processor q.
func (q *processor) crossingEdges() (list []*edge) {
	for _, l := range q.links {
		for _, e := range l.edges {
			if q.External && e.to.Isolated() {
				list = append(list, e)
			}
		}
	}
	return list
}

// fitting writes the methods of q's joiner that check whether a message can be sent to a process.
//
//	func (x *apiJoiner) fitsApiSkippingOrder(m Order) error {
//		return process.Check(x.topology.pool.MessageLimit(), func(b []byte, _ int) ([]byte, error) {
//			return appendOrder(b, &m)
//		})
//	}
func (p *part) fitting(q *processor) {
	x, m := p.v("x"), p.v("m")
	for _, e := range q.crossingEdges() {
		p.doc("%s returns an error if a message cannot be sent to the process of %s.", e.fits(), e.to.Name)
		p.add(jen.Func().Params(id(x).Add(ptr(q.joiner))).Add(id(e.fits())).Params(param(m, typeCode(e.Type))).Error().Block(
			jen.Return(process("Check").Call(sel(x, "topology", "pool", "MessageLimit").Call(), p.encoder(p.boundary.codecs[e.Crossing()], ref(m))))))
	}
}

// sendParam is the parameter for the function that sends a message out of a process.
func (p *part) sendParam() code {
	return param(p.v("send"), jen.Func().Params(jen.Id("edge, instance").Int(), jen.Id("payload").Op("[]byte")).Error())
}

// isolated writes both sides of an isolated processor: the proxy and the process.
func (p *part) isolated(q *processor) {
	p.remoteInstance(q)
	p.remoteMethods(q)
	p.deliver(q)
	p.handlerOf(q)
	p.outsideLinks(q)
}

// remoteInstance writes the proxy's methods that start and end the process.
//
//	type skippingRemote struct {
//		remote *process.Remote
//		x      *skippingInstance
//	}
//
//	func (x *skippingInstance) start(ctx context.Context) (*skippingRemote, error) {
//		r, err := process.StartRemote(ctx, process.Settings{
//			…
//		})
//		…
//		r.Cancel(ctx)
//		x.unit.Isolation().Started(r)
//		return &skippingRemote{r, x}, nil
//	}
func (p *part) remoteInstance(q *processor) {
	x, r, err, ctx := p.v("x"), p.v("r"), p.v("err"), p.v("ctx")
	unit := func(method string) *jen.Statement { return sel(x, "unit", "Isolation").Call().Dot(method) }
	info := process("Info").Values(
		key("Topology", jen.Lit(p.plan.ImportPath)), key("Hash", jen.Lit(p.planHash())), key("Processor", jen.Lit(q.Name)),
		key("ProcessorIndex", index(q.constant)), key("Instance", sel(x, "unit", "Index").Call()), key("Instances", jen.Lit(q.Instances)),
		key("MessageLimit", unit("MessageLimit").Call()), key("FencingToken", sel(x, "unit", "FencingToken").Call()))
	settings := fields{key("Info", info), key("Logger", unit("Logger").Call()), key("CloseTimeout", unit("CloseTimeout").Call()), key("OnLate", unit("CountKill")),
		key("OnStart", unit("LogStart")), key("Attempt", sel(x, "unit", "Attempt")), key("OnHolds", unit("SetHolds"))}
	settings.when(q.Watch.Memory > 0, "Memory", jen.Lit(int(q.Watch.Memory)))
	settings.when(q.Watch.Startup > 0, "StartupTimeout", duration(q.Watch.Startup))
	settings.when(q.Watch.Timeout > 0, "OnAlive", unit("Alive"))
	p.doc("%s is the proxy of an instance of %s that runs in its own process.", q.remote, q.Name)
	p.add(jen.Type().Add(id(q.remote)).Struct(param("remote", pointer(process("Remote"))), param("x", ptr(q.instance))))
	p.doc("start starts the process.")
	p.method(x, q.instance, "start", []code{param(ctx, jen.Qual("context", "Context"))}, []code{ptr(q.remote), jen.Error()},
		jen.List(id(r), id(err)).Op(":=").Add(process("StartRemote")).Call(id(ctx), process("Settings").Add(lines(settings))),
		jen.If(id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err))),
		sel(r, "Cancel").Call(id(ctx)),
		unit("Started").Call(id(r)),
		jen.Return(jen.Op("&").Add(id(q.remote)).Values(id(r), id(x)), jen.Nil()),
	)
	body := []code{}
	if q.observesInputs() {
		body = append(body, sel(x, "listen").Call())
	}
	body = append(body,
		jen.If(jen.List(sel(x, "p"), id(err)).Op("=").Add(sel(x, "start")).Call(id(ctx)), id(err).Op("==").Nil()).Block(
			unit("Attach").Call(sel(x, "p", "remote"))),
		jen.Return(id(err)))
	p.method(x, q.instance, "Init", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Params(param(err, jen.Error()))}, body...)
	p.closer(q)
	adopt := []code{set(sel(x, "p"), id(r)), unit("Attach").Call(sel(r, "remote"))}
	if q.observesInputs() {
		adopt = append(adopt, sel(x, "listen").Call())
	}
	p.doc("Renew replaces a process that has failed or hangs.")
	p.method(x, q.instance, "Renew", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Func().Params(), jen.Error()},
		jen.List(id(r), id(err)).Op(":=").Add(sel(x, "start")).Call(id(ctx)),
		jen.If(id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err))),
		jen.Return(jen.Func().Params().Block(adopt...), jen.Nil()),
	)
	if q.Serve == nil {
		return
	}
	serve := sel(x, "p", "remote", "Serve")
	if !q.CallsTimed() {
		p.short(x, q.instance, "Serve", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()},
			jen.Return(serve.Call(id(ctx), sel(x, "deliver"), sel(x, "out", "out", "Open"), sel(x, "out", "out", "Sent"))))
		return
	}
	callState := p.v("position")
	p.method(x, q.instance, "Serve", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()},
		define(callState, sel(x, "unit", "Enter").Call()),
		jen.Defer().Add(sel(callState, "Leave")).Call(),
		jen.Return(serve.Call(id(ctx), sel(x, "deliver"), sel(x, "out", "out", "Open"), jen.Func().Params().Error().Block(
			sel(callState, "Leave").Call(), // time spent waiting for room does not count as hanging
			jen.Defer().Add(sel(callState, "Enter")).Call(),
			jen.Return(sel(x, "out", "out", "Sent").Call()),
		))))
}

// planHash is the hash of the plan, as text.
func (p *part) planHash() string {
	hash := plan.Hash(p.plan)
	return hex.EncodeToString(hash[:])
}

// remoteMethods writes the proxy's methods that call the process.
//
//	func (r *skippingRemote) ReceiveApiSkippingOrder(m *Order) (reply Outcome, err error) {
//		b, err := process.Encode("", r.remote.Buffer(), r.x.unit.Isolation().MessageLimit(), func(b []byte, _ int) ([]byte, error) {
//			return appendOrder(b, m)
//		})
//		if err == nil {
//			b, err = r.remote.Call(process.Receive, int(EdgeApiSkippingOrder), b, r.x.deliver)
//		}
//		if err == nil {
//			err = consumeOutcome(b, &reply)
//		}
//		return reply, err
//	}
func (p *part) remoteMethods(q *processor) {
	r, m, b, err, reply := p.v("r"), p.v("m"), p.v("b"), p.v("err"), p.v("reply")
	for _, receive := range q.receives {
		e := receive.edge
		remote := q.receiveHere(e)
		codec := p.boundary.codecs[e.Crossing()]
		encode := []code{
			jen.List(id(b), id(err)).Op(":=").Add(p.encode(codec, "", sel(r, "remote", "Buffer").Call(), sel(r, "x", "unit", "Isolation").Call().Dot("MessageLimit").Call(), id(m))),
		}
		call := sel(r, "remote", "Call").Call(process("Receive"), index(e.constant), id(b), sel(r, "x", "deliver"))
		p.doc("%s sends a message to the process and waits until it is handled.", remote.name)
		results, answer := []code{jen.Error()}, []code{jen.If(id(err).Op("==").Nil()).Block(jen.List(jen.Id("_"), id(err)).Op("=").Add(call)), jen.Return(id(err))}
		if remote.Reply {
			results = []code{param(reply, typeCode(e.ReplyType)), param(err, jen.Error())}
			answer = []code{
				jen.If(id(err).Op("==").Nil()).Block(jen.List(id(b), id(err)).Op("=").Add(call)),
				jen.If(id(err).Op("==").Nil()).Block(set(id(err), id(mustIdent(p.boundary.codecs[e.Reply].Consume)).Call(id(b), ref(reply)))),
				jen.Return(id(reply), id(err)),
			}
		}
		p.method(r, q.remote, remote.name, []code{param(m, pointer(typeCode(e.Type)))}, results, append(encode, answer...)...)
	}
	simple := func(name Ident, params []code, edge, payload code) {
		p.method(r, q.remote, name, params, []code{jen.Error()},
			jen.List(jen.Id("_"), id(err)).Op(":=").Add(sel(r, "remote", "Call")).Call(process(name), edge, payload, sel(r, "x", "deliver")),
			jen.Return(id(err)))
	}
	in, restarted := p.v("in"), p.v("p")
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
		simple("ProcessorRestarted", []code{param(restarted, id("ProcessorIndex"))}, jen.Int().Call(id(restarted)), jen.Nil())
	}
	if q.AllInputsClosed != nil {
		simple("AllInputsClosed", nil, jen.Lit(0), jen.Nil())
	}
}

// deliver writes the method that receives the messages from the process.
//
//	func (x *skippingInstance) deliver(edge, instance int, payload []byte, put bool) error {
//		switch EdgeIndex(edge) {
//		case EdgeSkippingCollectorParcel:
//			var m Parcel
//			if err := consumeParcel(payload, &m); err != nil || !put {
//				return err
//			}
//			…
//			return nil
//		}
//		return process.ErrProtocol
//	}
func (p *part) deliver(q *processor) {
	x, m, err, i := p.v("x"), p.v("m"), p.v("err"), p.v("instance")
	var cases []code
	for _, l := range q.links {
		for _, e := range l.edges {
			if e.ask != nil || e.DeadLetter {
				continue
			}
			codec := p.boundary.codecs[e.Crossing()]
			body := []code{
				jen.Var().Add(id(m)).Add(typeCode(e.Type)),
				jen.If(define(err, id(mustIdent(codec.Consume)).Call(id(p.v("payload")), ref(m))), id(err).Op("!=").Nil().Op("||").Op("!").Add(id(p.v("put")))).Block(jen.Return(id(err))),
				jen.If(id(i).Op("<").Lit(0).Op("||").Add(id(i)).Op(">=").Lit(e.to.Instances)).Block(jen.Return(process("ErrProtocol"))),
			}
			if e.missesOutside() {
				none := jen.If(id(p.v("put"))).Block(remark(jen.Id("_").Op("=").Add(sel(x, "out", "out", "NoInstance").Call(index(e.constant))), "counts the message"))
				body = append([]code{jen.If(id(i).Op("==").Add(piper("Missed"))).Block(none, jen.Return(jen.Nil()))}, body...)
			}
			switch {
			case e.aimed:
				body = append(body, p.deliverAimed(e)...)
			case e.everywhere:
				body = append(append(body, row(jen.Block(p.pass(x+".out", e, id(i), id(m))...))), p.deliverToOthers(e)...)
			default:
				body = append(body, row(jen.Block(p.pass(x+".out", e, id(i), id(m))...)))
			}
			cases = append(cases, jen.Case(id(e.constant)).Block(append(body, jen.Return(jen.Nil()))...))
		}
	}
	edge := p.v("edge")
	params := []code{id(edge).Op(",").Add(param(i, jen.Int())), param(p.v("payload"), jen.Op("[]byte")), param(p.v("put"), jen.Bool())}
	p.doc("deliver checks a message from the process. If put is true, it also sends the message to its receiver.")
	var body []code
	if len(cases) > 0 {
		body = append(body, jen.Switch(id("EdgeIndex").Call(id(edge))).Block(cases...))
	}
	p.method(x, q.instance, "deliver", params, []code{jen.Error()}, append(body, jen.Return(process("ErrProtocol")))...)
}

// missesOutside reports whether an isolated process itself detects that an instance does not
// exist. It cannot detect this for a node, because only its parent knows the nodes.
func (e *edge) missesOutside() bool { return e.mayMiss() && !e.aimed }

// deliverAimed writes the code that sends the message m of a process to the node that it names.
// The process does not know the nodes, so deliver tells it if the node is unknown.
func (p *part) deliverAimed(e *edge) []code {
	x, to, m := p.v("x"), p.v("to"), p.v("m")
	slot := sel(to, "Slot").Call()
	return append(p.findAddress(e, id(m), to, e.outOf(x+".out")),
		jen.If(slot.Clone().Op(">=").Lit(0)).Block(p.pass(x+".out", e, slot, e.aimedAt(id(to), id(m)))...).Else().Block(
			jen.Return(sel(x, "out", "out", "NoInstance").Call(index(e.constant)))))
}

// deliverToOthers writes the code that sends a message to all other nodes. The process sends it
// to each instance of this node. The message to one of them stands for that to the other nodes:
// the one to which messages for single nodes go, because all of these have one order.
func (p *part) deliverToOthers(e *edge) []code {
	x, i, m, n := p.v("x"), p.v("instance"), p.v("m"), jen.Lit(e.to.Instances)
	out := func(method Ident) *jen.Statement { return sel(x, "out", "out", method) }
	var puts []code
	if e.Pointerful { // the receiver on this node may change its copy
		copied := p.v("o")
		puts = append(puts, jen.Var().Add(id(copied)).Add(typeCode(e.Type)),
			remark(id("_").Op("=").Add(id(mustIdent(p.boundary.codecs[e.Crossing()].Consume))).Call(id(p.v("payload")), ref(copied)), "as above"))
		m = copied
	}
	puts = append(puts, p.pass(x+".out", e, n, id(m))...)
	others := border("Everywhere").Call(ref(x, "out", "out"), n).Op(">").Add(n)
	if e.to.Instances > 1 {
		others = id(i).Op("==").Add(out("Index")).Call().Op("%").Add(n).Op("&&").Add(others)
	}
	return []code{jen.If(others).Block(puts...)}
}
