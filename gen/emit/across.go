package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// crosses reports whether messages of the link may go to another node.
func (l *link) crosses() bool {
	return slices.ContainsFunc(l.edges, func(e *edge) bool { return e.Crosses })
}

// forwards reports whether the receiver type of l passes messages on to other nodes. Other
// links may share the type.
func (p *part) forwards(l *link) bool {
	return slices.ContainsFunc(p.links, func(other *link) bool { return other.receiverType == l.receiverType && other.crosses() })
}

// addEncoders names the functions that encode the messages to other nodes, if codecs do not
// have their form.
func (m *model) addEncoders() {
	if m.plan.Cluster == nil || m.boundary == nil {
		return
	}
	b := m.boundary
	b.encoders = make(map[string]Ident)
	for _, name := range m.plan.Cluster.Messages {
		codec := b.codecs[name]
		switch {
		case codec.Append == "": // the message has a finding
		case codec.Bounded:
			b.encoders[name] = mustIdent(codec.Append)
		default:
			b.encoders[name] = m.scope.top("encode" + mustIdent(name))
		}
	}
}

// encoders writes the functions that give a codec the form that the runtime calls.
//
//	func encodeTotal(b []byte, m *Total, _ int) ([]byte, error) { return appendTotal(b, m) }
func (p *part) encoders() {
	if p.plan.Cluster == nil {
		return
	}
	b, m := p.v("b"), p.v("m")
	bytes, written := jen.Op("[]byte"), false
	for _, name := range p.plan.Cluster.Messages {
		codec, encoder := p.boundary.codecs[name], p.boundary.encoders[name]
		if encoder == "" || codec.Bounded {
			continue
		}
		if !written {
			p.doc("%s and the functions like it encode messages to other nodes. The runtime checks the size of these messages.", encoder)
			written = true
		}
		params := []code{param(b, bytes), param(m, pointer(typeCode(p.crossingType(name)))), param("_", jen.Int())}
		p.brief("", "", encoder, params, []code{bytes, jen.Error()}, jen.Return(id(mustIdent(codec.Append)).Call(id(b), id(m))))
	}
	p.file.Line()
}

// crossingType is the type of a message or reply that may go to another node.
func (p *part) crossingType(name string) plan.TypeRef {
	for _, e := range p.edges {
		switch {
		case !e.Crosses:
		case e.Message == name:
			return e.Type
		case e.Reply == name:
			return e.ReplyType
		}
	}
	panic(badName("no edge carries " + name))
}

// encodeAcross is the function that encodes the elements of e's queue for the Outlet out.
func (p *part) encodeAcross(e *edge, out Ident) code {
	encode := code(id(p.boundary.encoders[e.Message]))
	if e.requests() {
		encode = border("EncodeRequest").Call(id(out), encode, id(mustIdent(p.boundary.codecs[e.Reply].Consume)))
	}
	if e.aimed {
		encode = border("EncodeAimed").Call(encode)
	}
	return encode
}

func (p *part) forwardParams(out Ident) []code {
	return []code{param(out, pointer(border("Outlet"))), param(p.v("budget"), jen.Int())}
}

// forward is the call that passes on the messages of a link with one queue.
func (p *part) forward(e *edge, queueRef code, out Ident) *jen.Statement {
	call := border("ForwardEdge")
	if e.latest() {
		call = border("ForwardLatestEdge")
	}
	return call.Call(id(out), queueRef, id(p.v("budget")), p.encodeAcross(e, out))
}

// forwardFunc is the function by which a link with one queue passes its messages on to
// another node.
//
//	}, func(o *border.Outlet, budget int) int { return border.ForwardEdge(o, &l.Queue, budget, encodeKeyed) })
func (p *part) forwardFunc(e *edge, queueRef code) code {
	o := p.v("o")
	return jen.Func().Params(p.forwardParams(o)...).Int().Add(oneLine(jen.Return(p.forward(e, queueRef, o))))
}

// forwardMethod writes the method by which a link passes its messages on to another node.
//
//	func (l *tightFromBurst) Forward(out *border.Outlet, budget int) (n int) {
//		for n < budget {
//			o, k := l.first(), 0
//			switch EdgeIndex(o.Edge) {
//			case EdgeBurstTightOldest:
//				k = border.ForwardLatest(out, &l.oldest, o.N, encodeOldest)
//			case EdgeBurstTightNewest:
//				k = border.ForwardNumbered(out, &l.newest, budget-n, o.Until, encodeNewest)
//			…
//			}
//			if k == 0 {
//				break
//			}
//			n += k
//		}
//		return n
//	}
func (p *part) forwardMethod(l *link) {
	if !p.forwards(l) {
		return
	}
	v, out, budget, n, o, k := p.v("l"), p.v("out"), p.v("budget"), p.v("n"), p.v("o"), p.v("k")
	if !l.Sequenced {
		p.doc("Forward passes on messages to another node, at most %s.", budget)
		p.method(v, l.receiverType, "Forward", p.forwardParams(out), []code{jen.Int()}, jen.Return(p.forward(l.edges[0], ref(v, l.edges[0].field), out)))
		return
	}
	var cases []code
	for _, e := range l.edges {
		if !e.Crosses {
			continue
		}
		var call code
		if e.latest() {
			call = border("ForwardLatest").Call(id(out), ref(v, e.field), sel(o, "N"), p.encodeAcross(e, out))
		} else {
			call = border("ForwardNumbered").Call(id(out), ref(v, e.field), id(budget).Op("-").Add(id(n)), sel(o, "Until"), p.encodeAcross(e, out))
		}
		cases = append(cases, jen.Case(id(e.constant)).Block(set(id(k), call)))
	}
	p.doc("Forward passes on messages to another node, at most %s, in the order in which they were sent.", budget)
	p.method(v, l.receiverType, "Forward", p.forwardParams(out), []code{jen.Params(param(n, jen.Int()))},
		jen.For(id(n).Op("<").Add(id(budget))).Block(
			jen.List(id(o), id(k)).Op(":=").List(sel(v, "first").Call(), jen.Lit(0)),
			jen.Switch(id("EdgeIndex").Call(sel(o, "Edge"))).Block(cases...),
			jen.If(id(k).Op("==").Lit(0)).Block(jen.Break()),
			id(n).Op("+=").Add(id(k)),
		),
		jen.Return(id(n)),
	)
}

// sendsAcross reports whether messages of the processor may go to another node.
func (q *processor) sendsAcross() bool { return slices.ContainsFunc(q.links, (*link).crosses) }

// arrive writes the method that receives the messages that an instance on another node has
// sent. sender is the value with the links.
//
//	func (x *sourceInstance) Arrive(edge, to int, b []byte, reply border.ReplyTo) error {
//		switch EdgeIndex(edge) {
//		…
//		case EdgeSourceGatesKeyed:
//			var m Keyed
//			if err := consumeKeyed(b, &m); err != nil {
//				return err
//			}
//			queue.Put(x.out.toGates(to), m)
//			return nil
//		}
//		return border.UnknownEdge(edge)
//	}
func (p *part) arrive(q *processor, typ, sender Ident) {
	if !q.sendsAcross() {
		return
	}
	x, edge, to, b, m, err, reply := p.v("x"), p.v("edge"), p.v("to"), p.v("b"), p.v("m"), p.v("err"), p.v("reply")
	var cases []code
	for _, l := range q.links {
		for _, e := range l.edges {
			if !e.Crosses {
				continue
			}
			body := []code{
				jen.Var().Add(id(m)).Add(typeCode(e.Type)),
				jen.If(define(err, id(mustIdent(p.boundary.codecs[e.Message].Consume)).Call(id(b), ref(m))), id(err).Op("!=").Nil()).Block(jen.Return(id(err))),
			}
			element := code(id(m))
			if e.requests() {
				element = border("RemoteRequest").Call(ref(x, "unit"), id(m), id(p.boundary.encoders[e.Reply]), id(reply))
			}
			body = append(body, p.pass(sender, e, id(to), e.arrived(element))...)
			cases = append(cases, jen.Case(id(e.constant)).Block(append(body, jen.Return(jen.Nil()))...))
		}
	}
	params := []code{id(edge).Op(",").Add(param(to, jen.Int())), param(b, jen.Op("[]byte")), param(reply, border("ReplyTo"))}
	p.doc("Arrive decodes a message that an instance of %s on another node has sent, and puts it into its queue.", q.Name)
	p.method(x, typ, "Arrive", params, []code{jen.Error()},
		jen.Switch(id("EdgeIndex").Call(id(edge))).Block(cases...),
		jen.Return(border("UnknownEdge").Call(id(edge))))
}

// guest writes the type that stands for an external processor on another node.
//
//	type apiGuest struct {
//		unit   piper.Unit
//		out    piper.Out
//		desk   piper.Links[*apiToDesk]
//		…
//	}
func (p *part) guest(q *processor) {
	if q.guest == "" {
		return
	}
	from := p.v("from")
	fields := []code{param("unit", piper("Unit")), param("out", piper("Out"))}
	for _, l := range q.links {
		fields = append(fields, l.fieldOf())
	}
	p.doc("%s receives the messages that %s on another node has sent.", q.guest, q.Name)
	p.add(jen.Type().Add(id(q.guest)).Struct(fields...))
	topology := define(p.v("t"), sel(from, "unit", "Topology").Call().Assert(ptr("Topology")))
	p.linkMethod(q, jen.Func().Params(param(from, ptr(q.guest))), from, topology, func(l *link) []code {
		to := ref(p.v("t"), l.to.field).Index(p.instanceOf(l))
		return p.join(l, to, ref(from, "out"), p.setLink(from, l, ref(p.v("l"), l.name)))
	})
	for _, l := range q.links {
		if l.many() {
			p.getter(q.guest, l)
		}
	}
	p.arrive(q, q.guest, p.v("x"))
}
