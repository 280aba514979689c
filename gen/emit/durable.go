package emit

import (
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// Packages of the runtime for durable edges.
const (
	durablePath = plan.DurableRuntime
	edgesPath   = durablePath + "/edges"
	servePath   = edgesPath + "/serve"
	nodesPath   = edgesPath + "/nodes"
)

func durable(name Ident) *jen.Statement  { return jen.Qual(durablePath, string(name)) }
func edgesPkg(name Ident) *jen.Statement { return jen.Qual(edgesPath, string(name)) }

// durableImports lists the packages that the code of durable edges imports.
func durableImports(t *spec.Topology) []string {
	for _, e := range t.Edges {
		if !e.Durable {
			continue
		}
		list := []string{durablePath, edgesPath}
		if t.Durable != nil && t.Durable.Listen.Value != "" {
			list = append(list, servePath)
		}
		if t.Durable != nil && t.Durable.RaftTo >= 0 {
			list = append(list, nodesPath)
		}
		return list
	}
	return nil
}

// durableSend writes the methods of a sender for a durable edge.
//
//	func (s *ApiSender) StartPlaceOrder(ctx context.Context, m PlaceOrder) (durable.Handle[Receipt], error) {
//		return edges.StartID[Receipt](ctx, s.door, int(EdgeApiOrdersPlaceOrder), &m, string(m.OrderID))
//	}
//
//	func (s *ApiSender) SendPlaceOrder(ctx context.Context, m PlaceOrder) error {
//		_, err := s.StartPlaceOrder(ctx, m)
//		return err
//	}
//
//	func (s *ApiSender) AskPlaceOrder(ctx context.Context, m PlaceOrder) (reply Receipt, err error) {
//		h, err := s.StartPlaceOrder(ctx, m)
//		if err != nil {
//			return reply, err
//		}
//		return h.Wait(ctx)
//	}
func (p *part) durableSend(q *processor, sent *send) {
	s, m, ctx, err, h, reply := p.v("s"), p.v("m"), p.v("ctx"), p.v("err"), p.v("h"), p.v("reply")
	e, start := sent.edges[0], mustIdent(sent.Start)
	handle := []code{typeCode(e.Handle()), jen.Error()}
	params := []code{param(ctx, jen.Qual("context", "Context")), param(m, typeCode(sent.Type))}
	if sent.same != nil {
		p.doc("%s, %s and the methods below do the same as %s and %s: no other edge carries the message.", start, sent.name, mustIdent(sent.same.Start), sent.same.name)
		call := func(name Ident) code { return jen.Return(sel(s, name).Call(id(ctx), id(m))) }
		p.brief(s, q.sender, start, params, handle, call(mustIdent(sent.same.Start)))
		p.brief(s, q.sender, sent.name, params, []code{jen.Error()}, call(sent.same.name))
		if sent.ask != "" {
			p.brief(s, q.sender, sent.ask, params, []code{typeCode(e.ReplyType), jen.Error()}, call(sent.same.ask))
		}
		p.file.Line()
		return
	}
	p.doc("%s sends a message to %s and returns when the message is on disk. The handle has the result.%s", start, e.destination(), p.durableDoc(q, e))
	p.method(s, q.sender, start, params, handle, p.startBody(q, sent)...)
	p.doc("%s does the same as %s, without a handle.", sent.name, start)
	p.method(s, q.sender, sent.name, params, []code{jen.Error()},
		jen.List(id("_"), id(err)).Op(":=").Add(sel(s, start)).Call(id(ctx), id(m)),
		jen.Return(id(err)))
	if sent.ask != "" {
		p.doc("%s does the same as %s, and waits for the reply.", sent.ask, start)
		p.method(s, q.sender, sent.ask, params, []code{param(reply, typeCode(e.ReplyType)), param(err, jen.Error())},
			jen.List(id(h), id(err)).Op(":=").Add(sel(s, start)).Call(id(ctx), id(m)),
			jen.If(id(err).Op("!=").Nil()).Block(jen.Return(id(reply), id(err))),
			jen.Return(sel(h, "Wait").Call(id(ctx))))
	}
	if q.External {
		find := mustIdent("Find" + strings.TrimPrefix(sent.Start, "Start"))
		key := p.v("key")
		p.doc("%s returns the handle of a message that was sent earlier, perhaps by another process. %s is the ID of its first handle.", find, key)
		p.method(s, q.sender, find, []code{params[0], param(key, jen.String())}, handle,
			jen.Return(edgesPkg("Find").Types(e.result()).Call(id(ctx), e.carrier(s), index(e.constant), id(key))))
	}
}

// durableDoc completes the comment of a Start method.
func (p *part) durableDoc(q *processor, e *edge) (doc string) {
	if id := e.Durable.ID; id != nil {
		doc += " A second message with the same " + strings.Join(id.Access, ".") + " starts nothing, and gets the result of the first."
	}
	if !q.External && p.plan.DurableInputs(q.index) {
		doc += " In a durable function, " + string(p.v("ctx")) + " must be its durable.Context: then the message is part of its execution."
	}
	return doc
}

// startBody is the body of a Start method.
func (p *part) startBody(q *processor, sent *send) (body []code) {
	s, m, ctx, key := p.v("s"), p.v("m"), p.v("ctx"), p.v("key")
	e := sent.edges[0]
	if q.recorder != "" && !q.External {
		body = append(body, jen.If(sel(s, "out", "Keep").Call(id(m), jen.Lit(sent.recorded()))).Block(
			jen.Return(edgesPkg("Recorded").Types(e.result()).Call())))
	}
	args := []code{id(ctx), e.carrier(s), index(e.constant), jen.Op("&").Add(id(m))}
	of := e.Durable.ID
	if of == nil {
		return append(body, jen.Return(edgesPkg("Start").Types(e.result()).Call(args...)))
	}
	value := textOf(of, access(of, id(m), len(of.Access)))
	if len(of.Nils) > 0 {
		body = append(body,
			remark(define(key, jen.Lit("")).(*jen.Statement), "if a pointer in %s is nil", strings.Join(of.Access, ".")),
			jen.If(pathTest(of, id(m), "!=", "&&")).Block(set(id(key), value)))
		value = id(key)
	}
	return append(body, jen.Return(edgesPkg("StartID").Types(e.result()).Call(append(args, value)...)))
}

// durableMethods are those methods for a durable edge that have one of the names, as an interface
// declares them.
func (s *send) durableMethods(names []string) (methods []code) {
	e := s.edges[0]
	for _, method := range []struct {
		name    string
		results []code
	}{
		{s.Name, []code{jen.Error()}},
		{s.Start, []code{typeCode(e.Handle()), jen.Error()}},
		{s.Ask, []code{typeCode(e.ReplyType), jen.Error()}},
	} {
		if method.name != "" && slices.Contains(names, method.name) {
			methods = append(methods, signature(mustIdent(method.name), []code{jen.Qual("context", "Context"), typeCode(s.Type)}, method.results))
		}
	}
	return methods
}

// carrier is the runtime's part of the sender s.
func (e *edge) carrier(s Ident) code { return e.outOf(s) }

// result is the type of the reply, or of the result of a message without a reply.
func (e *edge) result() code { return typeCode(e.Handle().Args[0]) }

// access is the first n steps of a path in a message.
func access(s *plan.Selector, message code, n int) code {
	c := jen.Add(message)
	for _, name := range s.Access[:n] {
		c.Dot(string(mustIdent(name)))
	}
	if s.Method && n == len(s.Access) {
		c.Call()
	}
	return c
}

// pathTest compares all pointers on a path with nil.
func pathTest(s *plan.Selector, message code, compare, join string) code {
	var tests []code
	for _, steps := range s.Nils {
		tests = append(tests, jen.Add(access(s, message, steps)).Op(compare).Nil())
	}
	return joinedBy(join, tests)
}

// textOf is a value as text.
func textOf(s *plan.Selector, value code) code {
	format := func(function, as string, base ...code) code {
		return jen.Qual("strconv", function).Call(append([]code{jen.Id(as).Call(value)}, base...)...)
	}
	switch s.KeyKind {
	case plan.KeyInt:
		return format("FormatInt", "int64", jen.Lit(10))
	case plan.KeyUint:
		return format("FormatUint", "uint64", jen.Lit(10))
	case plan.KeyBool:
		return format("FormatBool", "bool")
	}
	return jen.String().Call(value)
}

// openDurable writes the method that makes the carrier of the durable edges.
//
//	func (t *Topology) openDurable(s piper.DurableSettings) (piper.DurableEdges, error) {
//		return edges.Open(edges.Config{
//			Topology: "shop",
//			…
//		}, s)
//	}
func (p *part) openDurable() {
	d := p.plan.Durable
	if d == nil {
		return
	}
	t, s := p.v("t"), p.v("s")
	var edges []code
	for _, e := range p.edges {
		if e.Durable != nil {
			edges = append(edges, lines(p.durableEdge(e)))
		}
	}
	f := fields{key("Topology", jen.Lit(p.plan.Name))}
	f.when(d.Nodes == "", "Store", jen.Lit(d.Store))
	f = append(f, key("Lease", duration(d.Lease)))
	if d.Nodes != "" {
		f = append(f, key("Replicate", p.replicate(d.Nodes)))
	}
	text := func(name, value string) { f.when(value != "", name, jen.Lit(value)) }
	text("Listen", d.Listen)
	text("TLSCert", d.Cert)
	text("TLSKey", d.Key)
	text("TLSCA", d.CA)
	f.when(d.Insecure, "Insecure", jen.True())
	f.when(d.Listen != "", "Serve", jen.Qual(servePath, "HTTP"))
	f = append(f, key("Edges", jen.Index().Add(edgesPkg("Edge")).Add(lines(edges))))
	p.doc("openDurable makes the carrier of the durable edges. Run opens the store.")
	p.method(t, "Topology", "openDurable", []code{param(s, piper("DurableSettings"))}, []code{piper("DurableEdges"), jen.Error()},
		jen.Return(edgesPkg("Open").Call(edgesPkg("Config").Add(lines(f)), id(s))))
}

// replicate is the function that opens the store on the nodes of a processor.
//
//	Replicate: func(l *slog.Logger) (edges.Replica, error) {
//		return nodes.Open(t.ledger[0].p, l)
//	},
func (p *part) replicate(name string) code {
	l := p.v("l")
	of := p.processors[slices.IndexFunc(p.processors, func(q *processor) bool { return q.Name == name })]
	return jen.Func().Params(param(l, jen.Op("*").Qual("log/slog", "Logger"))).Params(edgesPkg("Replica"), jen.Error()).Block(
		jen.Return(jen.Qual(nodesPath, "Open").Call(sel(p.v("t"), of.field).Index(jen.Lit(0)).Dot("p"), id(l))))
}

// durableEdge describes a durable edge for the runtime.
func (p *part) durableEdge(e *edge) fields {
	f := fields{key("Index", index(e.constant)), key("Receiver", index(e.to.constant)), key("Function", jen.Lit(e.Durable.Function))}
	f.when(e.Timeout > 0, "Timeout", duration(e.Timeout))
	if w := e.to.Watch; w != nil && w.Then == "retry" && w.Attempts > 1 {
		retry := fields{key("Attempts", jen.Lit(w.Attempts))}
		retry.when(w.RetryDelay > 0, "Delay", duration(w.RetryDelay))
		retry.when(w.RetryMaxDelay > 0, "MaxDelay", duration(w.RetryMaxDelay))
		retry.when(w.RetryJitter > 0, "Jitter", jen.Lit(w.RetryJitter))
		f = append(f, key("Retry", durable("Retry").Values(retry...)))
	}
	f.when(e.Durable.Limit != nil, "Limit", p.limit(e))
	return append(f, key("Handler", p.durableHandler(e)))
}

// limit is the limit of the executions of e.
func (p *part) limit(e *edge) code {
	l := e.Durable.Limit
	if l == nil {
		return nil
	}
	var f fields
	f.when(l.Concurrency > 0, "Concurrency", jen.Lit(l.Concurrency))
	f.when(l.Rate > 0, "Rate", jen.Lit(l.Rate))
	f.when(l.Rate > 0, "Period", duration(l.Every))
	limit := durable("Limit").Values(f...)
	if l.Per == nil {
		return limit
	}
	m := p.v("m")
	var body []code
	if len(l.Per.Nils) > 0 {
		body = append(body, jen.If(pathTest(l.Per, e.sentTo(m), "==", "||")).Block(jen.Return(jen.Lit(""))))
	}
	body = append(body, jen.Return(textOf(l.Per, access(l.Per, e.sentTo(m), len(l.Per.Access)))))
	return edgesPkg("LimitBy").Call(limit, jen.Func().Params(param(m, pointer(typeCode(e.Type)))).String().Block(body...))
}

// sentTo is the message to which m points.
func (e *edge) sentTo(m Ident) code {
	if e.Type.Kind == plan.Pointer {
		return jen.Parens(jen.Op("*").Add(id(m)))
	}
	return id(m)
}

// durableHandler is the code that passes a message of e to its handler.
func (p *part) durableHandler(e *edge) code {
	q, i, m, x, ctx := e.to, p.v("i"), p.v("m"), p.v("x"), p.v("ctx")
	message := param(m, pointer(typeCode(e.Type)))
	before, instance := []code(nil), code(jen.Lit(0))
	if e.byKey() {
		before, instance = e.byAccess(e.sentTo(m), i, false, jen.Lit(q.Instances))
	} else {
		message = param("_", pointer(typeCode(e.Type)))
	}
	t := p.v("t")
	at := func(field Ident) code { return jen.Op("&").Add(sel(t, q.field)).Index(id(i)).Dot(string(field)) }
	return edgesPkg("To").Custom(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true},
		jen.Lit(q.Instances),
		jen.Func().Params(message).Int().Block(append(before, jen.Return(instance))...),
		jen.Func().Params(param(i, jen.Int())).Add(edgesPkg("Instance")).Block(
			jen.Return(edgesPkg("Instance").Values(key("Unit", at("unit")), key("Inbox", at("inbox"))))),
		jen.Func().Params(param(i, jen.Int()), param(ctx, durable("Context")), param(m, pointer(typeCode(e.Type)))).Params(jen.Any(), jen.Error()).Block(
			append([]code{define(x, ref(t, q.field).Index(id(i)))}, p.durableCall(q.receive(e), q)...)...),
	)
}

// durableCall is the call of the handler of a durable edge.
func (p *part) durableCall(r *receive, q *processor) []code {
	x, m, ctx, reply, err := p.v("x"), p.v("m"), p.v("ctx"), p.v("reply"), p.v("err")
	message := code(jen.Op("*").Add(id(m)))
	if r.Message == plan.ByPointer {
		message = id(m)
	}
	call := sel(x, "p", r.name).Call(arguments(&r.Method, id(ctx), q.outArgument(&r.Method, p.senderOf(q)), message)...)
	if !r.Reply {
		return []code{jen.Return(jen.Nil(), call)}
	}
	return []code{
		jen.List(id(reply), id(err)).Op(":=").Add(call),
		jen.Return(jen.Op("&").Add(id(reply)), id(err)),
	}
}

// durableWoken writes the method that calls the handlers of durable edges.
//
//	func (x *ordersInstance) Woken() error { return x.inbox.Run(&x.unit) }
func (p *part) durableWoken(q *processor) {
	if !p.plan.DurableInputs(q.index) {
		return
	}
	x := p.v("x")
	p.doc("Woken calls the handler of a message of a durable edge.")
	p.short(x, q.instance, "Woken", nil, []code{jen.Error()}, jen.Return(sel(x, "inbox", "Run").Call(ref(x, "unit"))))
}
