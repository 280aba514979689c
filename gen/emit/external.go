package emit

import (
	"cmp"
	"slices"

	"github.com/dave/jennifer/jen"
)

// externalSender writes the sender of an external processor. Many goroutines outside
// the pool may use it.
//
//	type ApiSender struct {
//		door       *piper.External
//		links      apiLinks
//		parser     [2]piper.Lazy[apiToParser]
//		callsQuery piper.Calls[Query, Answer]
//	}
func (p *part) externalSender(q *processor) {
	s := p.v("s")
	fields := []code{param("door", pointer(piper("External")))}
	if len(q.links) > 0 {
		fields = append(fields, id("links").Add(id(q.linker)))
	}
	for _, l := range q.links {
		t := piper("Lazy").Types(id(l.name))
		if l.many() {
			t = jen.Index(jen.Lit(l.to.slots())).Add(t)
		}
		fields = append(fields, id(l.field).Add(t))
	}
	for _, sent := range q.sends {
		if sent.asks() && !sent.gathers() {
			fields = append(fields, id(sent.callsField()).Add(piper("Calls").Types(typeCode(sent.Type), typeCode(sent.edges[0].ReplyType))))
		}
	}
	p.doc("%s sends the messages of %s. Any number of goroutines may use it at any time after New.", q.sender, q.Name)
	p.add(jen.Type().Add(id(q.sender)).Struct(fields...))
	for _, sent := range q.sends {
		if sent.Start != "" {
			p.durableSend(q, sent)
			continue
		}
		p.externalSend(q, sent)
		if sent.ask != "" {
			p.ask(q, sent)
		}
	}
	p.doc("Close says that no more messages will come. It may be called more than once.")
	p.short(s, q.sender, "Close", nil, nil, sel(s, "door", "Close").Call())
	for _, l := range q.links {
		p.externalGetter(q, l)
	}
}

// asks reports whether s has an Ask method with its own code. It is false if the Ask method
// only calls another Ask method.
func (s *send) asks() bool { return s.ask != "" && s.same == nil && s.Start == "" }

// gathers reports whether the Ask method of s joins the replies of several instances.
func (s *send) gathers() bool { return s.asks() && s.edges[0].Joins }

// externalGetter writes:
//
//	func (s *ApiSender) toParser(i int) (*apiToParser, error) {
//		return s.parser[i].Get(func() (*apiToParser, error) {
//			l := s.links.toParser(i)
//			return l, s.door.Open(&l.gate, &l.link)
//		})
//	}
func (p *part) externalGetter(q *processor, l *link) {
	s, i, n := p.v("s"), p.v("i"), p.v("l")
	var params []code
	field, made := sel(s, l.field), sel(s, "links", l.getter)
	if l.many() {
		params = []code{param(i, jen.Int())}
		field.Index(id(i))
		made.Call(id(i))
	} else {
		made.Call()
	}
	results := []code{ptr(l.name), jen.Error()}
	p.doc("%s returns a link to %s. The first call makes the link.", l.getter, l.to.Name)
	p.method(s, q.sender, l.getter, params, results,
		jen.Return(field.Dot("Get").Call(jen.Func().Params().Params(results...).Block(
			define(n, made),
			jen.Return(id(n), sel(s, "door", "Open").Call(ref(n, "gate"), ref(n, "link"))),
		))),
	)
}

// externalSend writes one method that sends from outside. The method returns when the
// message is in all its queues, or in none.
//
//	func (s *ApiSender) SendQuery(ctx context.Context, m Query) error {
//		return s.sendQuery(ctx, piper.NoReply[Query, Answer](m))
//	}
//
//	func (s *ApiSender) sendQuery(ctx context.Context, r piper.Request[Query, Answer]) error {
//		l, err := s.toParser(route.Int(r.Message.ID, 2))
//		if err != nil {
//			return err
//		}
//		t := piper.Target{Gate: &l.gate, Head: &l.query.Head, Full: piper.Wait}
//		if err := s.door.Lock(ctx, t); err != nil {
//			return err
//		}
//		queue.Put(&l.query, r)
//		r.Commit(ctx, s.door, t)
//		return nil
//	}
func (p *part) externalSend(q *processor, sent *send) {
	s, m := p.v("s"), p.v("m")
	ctx := param(p.v("ctx"), jen.Qual("context", "Context"))
	params := []code{ctx, param(m, typeCode(sent.Type))}
	results := []code{jen.Error()}
	if sent.same != nil {
		p.doc("%s does the same as %s: no other edge carries the message.", sent.name, sent.same.name)
		p.short(s, q.sender, sent.name, params, results, jen.Return(sel(s, sent.same.name).Call(id(p.v("ctx")), id(m))))
		return
	}
	p.externalDoc(sent)
	d := &entry{delivery: delivery{part: p, sent: sent, message: id(m)}}
	if !sent.asks() {
		p.method(s, q.sender, sent.name, params, results, d.statements()...)
		return
	}
	e, r := sent.edges[0], p.v("r")
	if sent.gathers() {
		d.gathering = p.v("c")
		p.short(s, q.sender, sent.name, params, results, jen.Return(sel(s, sent.core()).Call(id(p.v("ctx")), id(m), jen.Nil())))
		p.method(s, q.sender, sent.core(), append(params, param(d.gathering, pointer(piper("Gathering").Types(typeCode(e.ReplyType))))), results, d.statements()...)
		return
	}
	request := piper("NoReply").Types(typeCode(e.Type), typeCode(e.ReplyType)).Call(id(m))
	enter := sel(s, sent.core()).Call(id(p.v("ctx")), request)
	if e.offers() { // the refused message was counted; Send does not report it
		err := p.v("err")
		p.method(s, q.sender, sent.name, params, results,
			jen.If(define(err, enter), id(err).Op("!=").Add(topo("ErrFull"))).Block(jen.Return(id(err))),
			jen.Return(jen.Nil()),
		)
	} else {
		p.short(s, q.sender, sent.name, params, results, jen.Return(enter))
	}
	d.message, d.request = sel(r, "Message"), id(r)
	p.method(s, q.sender, sent.core(), []code{ctx, param(r, e.messageType())}, results, d.statements()...)
}

func (p *part) externalDoc(sent *send) {
	var to []string
	waits, fails := false, false
	for _, e := range sent.edges {
		waits = waits || !e.fails() && !e.offers() && !e.latest()
		fails = fails || e.fails()
		to = append(to, e.destination()+e.dropDoc())
	}
	doc := string(sent.name) + " sends a message to " + list(to) + "."
	doc += sent.missDoc()
	switch several := len(sent.edges) > 1; {
	case several && sent.misses():
		doc += " After any other error no receiver has the message."
	case several || sent.edges[0].spread():
		doc += " If it returns an error, no receiver has the message."
	}
	doc += sent.keyDoc()
	if waits {
		doc += " It waits while a queue is full."
	}
	if fails {
		doc += " If a queue is full, it returns topo.ErrFull."
	}
	p.doc("%s", doc)
}

// ask writes the method that sends and waits for the reply.
//
//	func (s *ApiSender) AskQuery(ctx context.Context, m Query) (reply Answer, err error) {
//		r := s.callsQuery.Request(m)
//		if err = s.sendQuery(ctx, r); err != nil {
//			return reply, err
//		}
//		return s.callsQuery.Wait(ctx, s.door, r, 0)
//	}
func (p *part) ask(q *processor, sent *send) {
	s, m, ctx, r, err, reply := p.v("s"), p.v("m"), p.v("ctx"), p.v("r"), p.v("err"), p.v("reply")
	e := sent.edges[0]
	params := []code{param(ctx, jen.Qual("context", "Context")), param(m, typeCode(sent.Type))}
	results := []code{param(reply, typeCode(e.ReplyType)), param(err, jen.Error())}
	if sent.same != nil {
		p.doc("%s does the same as %s: no other edge carries the message.", sent.ask, sent.same.ask)
		p.short(s, q.sender, sent.ask, params, results, jen.Return(sel(s, sent.same.ask).Call(id(ctx), id(m))))
		return
	}
	doc := string(sent.ask) + " sends a message to " + e.destination() + " and waits for the reply"
	if sent.gathers() {
		doc = string(sent.ask) + " sends a message to " + e.destination() + " and waits for their replies"
	}
	var body []code
	if e.Timeout > 0 {
		doc += " for at most " + e.Timeout.String()
		cancel := p.v("cancel")
		body = append(body,
			jen.List(id(ctx), id(cancel)).Op(":=").Qual("context", "WithTimeout").Call(id(ctx), duration(e.Timeout)),
			jen.Defer().Add(id(cancel)).Call(),
		)
	}
	if sent.gathers() {
		doc += ". The method Aggregate joins the replies. If some instances have not answered, the error is a *topo.PartialError, and the reply joins the others"
	}
	p.doc("%s.", doc)
	if sent.gathers() {
		p.method(s, q.sender, sent.ask, params, results, append(body, p.gather(e, sent)...)...)
		return
	}
	calls := func(method Ident) *jen.Statement { return sel(s, sent.callsField(), method) }
	p.method(s, q.sender, sent.ask, params, results, append(body,
		define(r, calls("Request").Call(id(m))),
		jen.If(set(id(err), sel(s, sent.core()).Call(id(ctx), id(r))), id(err).Op("!=").Nil()).Block(jen.Return(id(reply), id(err))),
		jen.Return(calls("Wait").Call(id(ctx), sel(s, "door"), id(r), jen.Lit(0))),
	)...)
}

// gather writes the code that sends a message to several instances and waits for their replies.
//
//	c := piper.Gather[Total](4)
//	if err = s.sendCountToCounter(ctx, m, c); err != nil {
//		return reply, err
//	}
//	return c.Wait(ctx, s.door, func(a, b Total) Total { return a.Aggregate(b) })
func (p *part) gather(e *edge, sent *send) []code {
	s, m, ctx, err, reply, g := p.v("s"), p.v("m"), p.v("ctx"), p.v("err"), p.v("reply"), p.v("c")
	_, count := e.span()
	begin := piper("Gather").Types(typeCode(e.ReplyType)).Call(jen.Lit(count))
	if e.everywhere {
		begin = border("GatherEverywhere").Types(typeCode(e.ReplyType)).Call(sel(s, "door"), jen.Lit(count))
	}
	a, b := p.v("a"), p.v("b")
	join := jen.Func().Params(id(a).Op(",").Add(param(b, typeCode(e.ReplyType)))).Add(typeCode(e.ReplyType)).Add(oneLine(jen.Return(sel(a, "Aggregate").Call(id(b)))))
	return []code{
		define(g, begin),
		jen.If(set(id(err), sel(s, sent.core()).Call(id(ctx), id(m), id(g))), id(err).Op("!=").Nil()).Block(jen.Return(id(reply), id(err))),
		jen.Return(sel(g, "Wait").Call(id(ctx), sel(s, "door"), join)),
	}
}

// entry writes the code that puts a message from outside into its queues.
type entry struct {
	delivery
	request   code  // the element to put into the queue; nil: the message itself
	gathering Ident // the call whose parts the queues get; "" for none
}

// statements returns the whole code: it checks that the message can be encoded (if a receiver
// is isolated), finds the links, locks them when all queues have room, puts the message and
// unlocks the links.
func (d *entry) statements() []code {
	edges := slices.Clone(d.sent.edges)
	slices.SortFunc(edges, func(a, b *edge) int { return cmp.Compare(a.to.index, b.to.index) })
	single := len(edges) == 1 && !edges[0].spread()
	var check, find, puts []code
	for _, e := range edges {
		if e.to.Isolated() {
			err := d.v("err")
			check = append(check, jen.If(define(err, sel(d.v("s"), "links", e.fits()).Call(d.message)), id(err).Op("!=").Nil()).Block(
				jen.Return(sel(d.v("s"), "door", "Refuse").Call(id(d.v("ctx")), index(e.constant), id(err)))))
		}
	}
	number := 0
	for i, e := range edges {
		b, a := d.edge(e, single, i == len(edges)-1)
		find, puts = append(find, b...), append(puts, a...)
		if e.spread() {
			_, n := e.span()
			number += n
		} else {
			number++
		}
	}
	result := code(jen.Nil())
	if !single {
		find, result = append(d.declareMissed(d.sent), find...), d.result(d.sent)
	}
	ctx, err, targets := d.v("ctx"), d.v("err"), d.v("targets")
	if single {
		targets = d.v("t")
	} else {
		find = append([]code{define(targets, jen.Make(jen.Index().Add(piper("Target")), jen.Lit(0), jen.Lit(number)))}, find...)
	}
	door := func(method Ident, args ...code) *jen.Statement {
		all := id(targets)
		if !single {
			all.Op("...")
		}
		return sel(d.v("s"), "door", method).Call(append(args, all)...)
	}
	body := append(append(check, find...), jen.If(define(err, door("Lock", id(ctx))), id(err).Op("!=").Nil()).Block(jen.Return(id(err))))
	body = append(body, puts...)
	commit := door("Commit")
	if d.request != nil {
		commit = jen.Add(d.request).Dot("Commit").Call(id(d.v("ctx")), sel(d.v("s"), "door"), id(targets))
	}
	body = append(body, commit)
	if single && edges[0].offers() && d.request != nil {
		return append(body, jen.Return(id(err)))
	}
	return append(body, jen.Return(result))
}

// edge writes the code that finds the links of one edge, and the puts.
func (d *entry) edge(e *edge, single, last bool) (find, puts []code) {
	i, l, err, s := d.v("i"), d.v("l"), d.v("err"), d.v("s")
	if !single {
		i, l = e.to.local+"Index", e.to.local+"Link"
	}
	get := func(to Ident, instance code) []code {
		var instances []code
		if e.link.many() {
			instances = []code{instance}
		}
		return []code{
			jen.List(id(to), id(err)).Op(":=").Add(sel(s, e.link.getter)).Call(instances...),
			jen.If(id(err).Op("!=").Nil()).Block(jen.Return(id(err))),
		}
	}
	if e.spread() {
		return d.several(e, get, last)
	}
	var instance code
	miss := e.mayMiss()
	if e.aimed && single {
		i = d.v("to")
	}
	if e.link.many() || miss {
		find, instance = d.choose(e, d.message, i, miss)
	}
	message := d.message
	var copied []code
	if d.sent.Clone && !last {
		message = id(e.to.local + "Copy")
		copied = []code{define(e.to.local+"Copy", d.copyFor(false))}
	}
	enter := d.enter(e, id(l), e.aimedAt(id(i), d.element(e, message)))
	if single {
		if miss {
			nowhere := sel(s, "door", "SendNowhere").Call(id(d.v("ctx")), index(e.constant))
			find = append(find, jen.If(jen.Add(instance).Op("<").Lit(0)).Block(jen.Return(nowhere)))
		}
		return append(append(find, get(l, instance)...), define(d.v("t"), d.target(e, l))), enter
	}
	add := func(l Ident) code { return set(id(d.v("targets")), jen.Append(id(d.v("targets")), d.target(e, l))) }
	if !miss {
		return append(append(append(find, get(l, instance)...), add(l)), copied...), enter
	}
	found, exists := d.v("l"), jen.Add(instance).Op(">=").Lit(0)
	find = append(find,
		jen.Var().Add(param(l, ptr(e.link.name))),
		jen.If(exists.Clone()).Block(append(get(found, instance), set(id(l), id(found)), add(l))...))
	find = append(find, copied...)
	none := sel(s, "door", "NoInstance").Call(index(e.constant))
	return find, []code{jen.If(exists).Block(enter...).Else().Block(set(id(d.v("missed")), none))}
}

// several is like edge, for an edge to several instances.
func (d *entry) several(e *edge, get func(Ident, code) []code, last bool) (find, puts []code) {
	from, count := e.span()
	i, l, targets := d.v("i"), d.v("l"), d.v("targets")
	all := e.to.local + "Links"
	instance := id(i)
	if from > 0 {
		instance = jen.Lit(from).Op("+").Add(instance)
	}
	links := jen.Var().Add(id(all)).Index(jen.Lit(count)).Add(ptr(e.link.name))
	if e.everywhere {
		links = id(all).Op(":=").Make(jen.Index().Add(ptr(e.link.name)), border("EverywhereFrom").Call(e.outOf(d.v("s")), jen.Lit(count)))
	}
	find = append(find,
		links,
		jen.For(id(i).Op(":=").Range().Add(id(all))).Block(append(get(l, instance),
			set(id(all).Index(id(i)), id(l)),
			set(id(targets), jen.Append(id(targets), d.target(e, l))),
		)...),
	)
	loop := func(k Ident, over, message code) code {
		return jen.For(jen.List(id(k), id(l)).Op(":=").Range().Add(over)).Block(d.enter(e, id(l), d.element(e, message))...)
	}
	if !d.sent.Clone {
		if d.gathering != "" {
			return find, []code{d.putParts(e, all, d.message)}
		}
		return find, []code{loop("_", id(all), d.message)}
	}
	// Clone is code of the user, which may panic: it must not run while the gates are locked.
	copies := e.to.local + "Copies"
	number, over := code(jen.Len(id(all))), code(id(all))
	if last = last && !e.everywhere && d.gathering == ""; last {
		number, over = jen.Lit(count-1), id(all).Index(jen.Empty(), jen.Lit(count-1))
	}
	find = append(find, define(copies, jen.Make(jen.Index().Add(typeCode(e.Type)), number)),
		jen.For(id(i).Op(":=").Range().Add(id(copies))).Block(set(id(copies).Index(id(i)), d.copyFor(false))))
	switch message := id(copies).Index(id(i)); {
	case d.gathering != "":
		return find, []code{d.putParts(e, all, message)}
	case last:
		return find, append([]code{loop(i, over, message), define(l, id(all).Index(jen.Lit(count-1)))}, d.enter(e, id(l), d.element(e, d.message))...)
	default:
		return find, []code{loop(i, over, message)}
	}
}

// putParts writes the code that puts a request into the queues of several links.
//
//	for i, l := range probeLinks {
//		r := piper.Part(c, i, probeCopies[i])
//		queue.Put(&l.count, r)
//	}
func (d *entry) putParts(e *edge, all Ident, message code) code {
	i, l, r := d.v("i"), d.v("l"), d.v("r")
	part := piper("Part").Call(id(d.gathering), id(i), message)
	return jen.For(jen.List(id(i), id(l)).Op(":=").Range().Add(id(all))).Block(
		append([]code{define(r, part)}, d.put(e, id(l), id(r), sel(r, "Evicted").Call())...)...)
}

// target is the runtime's description of the queue of e in link l.
func (d *entry) target(e *edge, l Ident) code {
	return piper("Target").Values(
		jen.Id("Gate").Op(":").Add(ref(l, "gate")),
		jen.Id("Head").Op(":").Add(ref(l, e.field, "Head")),
		jen.Id("Full").Op(":").Add(piper(e.policy())),
	)
}

// element is the element that enters the queue for a message, which may be a copy.
func (d *entry) element(e *edge, message code) code {
	switch {
	case d.request != nil:
		return d.request
	case e.requests():
		return piper("NoReply").Types(typeCode(e.Type), typeCode(e.ReplyType)).Call(message)
	}
	return message
}

// enter puts an element. If the queue refuses a request, the caller gets ErrFull.
func (d *entry) enter(e *edge, l *jen.Statement, element code) []code {
	if d.request == nil || !e.offers() {
		return d.put(e, l, element)
	}
	return d.put(e, l, element, set(id(d.v("err")), topo("ErrFull")))
}
