package emit

import "github.com/dave/jennifer/jen"

// linker writes the method that makes the links from an instance.
//
//	func (from *feedInstance) Link(_, i int) {
//		from.out.parser.Make(2)
//		if i < 0 {
//			return
//		}
//		l, x := new(piper.LinkOf[queue.Edge[Raw]]), &from.unit.Topology().(*Topology).parser[i]
//		from.out.out.Join(&x.unit, l, int(EdgeFeedParserRaw), 1024, func(budget int) (n int, err error) {
//			…
//		})
//		from.out.parser.Set(i, &l.Queue)
//	}
func (p *part) linker(q *processor) {
	from := p.v("from")
	out := from + ".out"
	if q.External {
		p.joiner(q)
		return
	}
	if len(q.links) == 0 {
		return
	}
	top := from + ".unit.Topology().(*Topology)"
	var first code
	if len(q.links) > 1 {
		first = define(p.v("t"), id(top))
		top = p.v("t")
	}
	p.linkMethod(q, jen.Func().Params(param(from, ptr(q.instance))), out, first, func(l *link) []code { return p.linkTo(l, top, out) })
}

// linkMethod writes the method Link. It begins with first; make writes the code for each link.
func (p *part) linkMethod(q *processor, method *jen.Statement, out Ident, first code, make func(*link) []code) {
	processor, i := p.v("processor"), p.v("i")
	var cases [][]code
	many := false
	for _, l := range q.links {
		var body []code
		if l.many() {
			many = true
			table := sel(out, l.field)
			body = append(body,
				table.Dot("Make").Call(jen.Lit(l.to.slots())),
				jen.If(id(i).Op("<").Lit(0)).Block(jen.Return()),
			)
		}
		cases = append(cases, append(body, make(l)...))
	}
	if len(cases) == 1 {
		processor = "_"
	}
	if !many {
		i = "_"
	}
	method.Id("Link").Params(id(processor).Op(",").Add(param(i, jen.Int())))
	var body []code
	if first != nil {
		body = append(body, first)
	}
	if len(cases) == 1 {
		p.add(method.Block(append(body, cases[0]...)...))
		return
	}
	var all []code
	for n, body := range cases {
		all = append(all, jen.Case(id(q.links[n].to.constant)).Block(body...))
	}
	p.add(method.Block(append(body, jen.Switch(id("ProcessorIndex").Call(id(processor))).Block(all...))...))
}

// linkTo writes the code that makes one link from the sender out in the topology top.
func (p *part) linkTo(l *link, top, out Ident) []code {
	v, x, from := p.v("l"), p.v("x"), p.v("from")
	to := ref(top, l.to.field).Index(p.instanceOf(l))
	e := l.edges[0]
	switch {
	case !l.single():
		return p.join(l, to, p.outOf(l.from, from), p.setLink(out, l, ref(v, l.name)))
	case l.to.perMessage():
		return p.join(l, to, p.outOf(l.from, from), p.setLink(out, l, ref(v, e.field)))
	}
	var before []code
	drain := id(l.receiverType).Call(ref(v, "Queue"), id(x))
	if !l.shared {
		before, drain = p.drain(&handler{part: p, receive: l.to.receive(e), of: l.to, linking: true})
	}
	join := sel(out, "out", "Join").Call(ref(x, "unit"), id(v), index(e.constant), jen.Lit(e.capacity()), drain)
	if e.Crosses {
		join = border("JoinAcross").Call(ref(out, "out"), ref(x, "unit"), id(v), index(e.constant), jen.Lit(e.capacity()), drain, p.forwardFunc(e, ref(v, "Queue")))
	}
	return append(append([]code{jen.List(id(v), id(x)).Op(":=").List(jen.New(piper("LinkOf").Types(e.queueType())), to)}, before...),
		join,
		p.setLink(out, l, ref(v, "Queue")),
	)
}

// setLink writes the code that gives a link to the sender out.
func (p *part) setLink(out Ident, l *link, made code) code {
	if l.many() {
		return sel(out, l.field, "Set").Call(id(p.v("i")), made)
	}
	return set(sel(out, l.field), made)
}

// instanceOf is the index of the instance at the end of l.
func (p *part) instanceOf(l *link) code {
	if l.many() {
		return id(p.v("i"))
	}
	return jen.Lit(0)
}

// join writes the code that makes a link with a receiver type of its own, followed by end.
//
//	l := &auditFromParser{to: &from.unit.Topology().(*Topology).audit[0]}
//	l.link.Join(
//		l,
//		…
func (p *part) join(l *link, to, out, end code) []code {
	v := p.v("l")
	args := []code{id(v), out, ref(v, "to", "unit")}
	for _, e := range l.edges {
		args = append(args, queue("Init").Call(ref(v, e.field), index(e.constant), jen.Lit(e.capacity()), ref(v, "link")))
	}
	call := sel(v, "link", "Join")
	if len(l.edges) > 1 { // a line for each argument
		call.Custom(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true}, args...)
	} else {
		call.Call(args...)
	}
	return []code{define(v, jen.Op("&").Add(id(l.receiverType)).Values(key("to", to))), call, end}
}

// joiner writes the type that makes the links from an external processor.
//
//	type apiJoiner struct {
//		topology *Topology
//	}
//
//	func (x *apiJoiner) toParser(i int) *apiToParser {
//		l := &parserFromApi{to: &x.topology.parser[i]}
//		l.link.Join(l, nil, &l.to.unit, queue.Init(&l.query, int(EdgeApiParserQuery), 1024, &l.link))
//		return &l.apiToParser
//	}
func (p *part) joiner(q *processor) {
	if q.joiner == "" {
		return
	}
	x := p.v("x")
	p.doc("%s makes the links from %s.", q.joiner, q.Name)
	p.add(jen.Type().Add(id(q.joiner)).Struct(param("topology", ptr("Topology"))))
	for _, l := range q.links {
		to := jen.Op("&").Add(sel(x, "topology", l.to.field)).Index(p.instanceOf(l))
		p.method(x, q.joiner, l.getter, p.joinParams(l), []code{ptr(l.name)}, p.join(l, to, jen.Nil(), jen.Return(ref(p.v("l"), l.name)))...)
	}
	p.fitting(q)
}
