package emit

import (
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/topogen/topogen/spec"
)

// sender writes the sender of a processor of the pool.
//
//	type ParserSender struct {
//		out   piper.Out
//		audit *parserToAudit
//	}
func (p *part) sender(q *processor) {
	out := piper("Out")
	if q.exchangesSender() {
		out = pointer(out)
	}
	fields := []code{param("out", out)}
	switch {
	case q.recorder != "": // the comment at the top of the file explains it
	case q.Machine != nil && len(q.Machine.Events) > 0:
		p.doc("%s sends the answers and events of %s.", q.sender, q.Name)
	case q.Machine != nil:
		p.doc("%s sends the answers of %s.", q.sender, q.Name)
	default:
		p.doc("%s sends the replies of %s.", q.sender, q.Name)
	}
	if q.exchangesSender() {
		fields = append(fields, param("position", pointer(piper("Position"))))
	}
	for _, l := range q.links {
		fields = append(fields, l.fieldOf())
	}
	p.add(jen.Type().Add(id(q.sender)).Struct(fields...))
	for _, sent := range q.sends {
		p.send(q, sent)
	}
	for _, l := range q.links {
		if l.many() {
			p.getter(q.sender, l)
		}
		for _, e := range l.edges {
			if e.ask != nil {
				p.replier(q, e)
			}
		}
	}
}

// fieldOf is the field of a sender for the link, or for the links to all instances.
func (l *link) fieldOf() code {
	t := pointer(l.sentBy())
	if l.many() {
		t = piper("Links").Types(t)
	}
	return param(l.field, t)
}

// makeLink writes the code that makes the link to a single instance before the first
// message. It writes nothing for a link to one of many instances, because its getter
// makes the link. linkAt is the field with the link, or the getter of one of many.
func (p *part) makeLink(s Ident, l *link) []code {
	if l.many() {
		return nil
	}
	return []code{jen.If(sel(s, l.field).Op("==").Nil()).Block(sel(s, "out", "Link").Call(index(l.to.constant), jen.Lit(0)))}
}

func (p *part) linkAt(s Ident, l *link) *jen.Statement {
	if l.many() {
		return sel(s, l.getter)
	}
	return sel(s, l.field)
}

// made is the condition that the link, or the table of the links to several instances, exists.
func (p *part) made(s Ident, l *link) *jen.Statement {
	if l.many() {
		return sel(s, l.field, "Made").Call()
	}
	return sel(s, l.field).Op("!=").Nil()
}

func (p *part) unmade(s Ident, l *link) *jen.Statement {
	if l.many() {
		return jen.Op("!").Add(p.made(s, l))
	}
	return sel(s, l.field).Op("==").Nil()
}

// getter writes the method that returns one of many links. It makes the link at the
// first call.
//
//	func (s *FeedSender) toParser(i int) *queue.Edge[Raw] {
//		return s.parser.Get(&s.out, int(ProcessorParser), i)
//	}
func (p *part) getter(typ Ident, l *link) {
	s, i := p.v("s"), p.v("i")
	out := ref(s, "out")
	if l.from.exchangesSender() && typ == l.from.sender {
		out = sel(s, "out")
	}
	what := "the link"
	if l.single() {
		what = "the queue"
	}
	p.doc("%s returns %s to an instance of %s. The first call makes it.", l.getter, what, l.to.Name)
	p.method(s, typ, l.getter, []code{param(i, jen.Int())}, []code{pointer(l.sentBy())},
		jen.Return(sel(s, l.field, "Get").Call(out, index(l.to.constant), id(i))),
	)
}

// send writes one method that sends. A message that travels along a single edge
// has two methods that do the same; the longer calls the shorter.
//
//	func (s *AuditSender) SendNote(m Note) {
//		if s.audit != nil || s.out.First(int(ProcessorAudit), m, "Note NoteToAudit") {
//			queue.Put(s.audit, m)
//		}
//	}
//	func (s *AuditSender) SendNoteToAudit(m Note) { s.SendNote(m) }
func (p *part) send(q *processor, sent *send) {
	s, m := p.v("s"), p.v("m")
	params := []code{param(m, typeCode(sent.Type))}
	var results []code
	if sent.Error {
		results = []code{jen.Error()}
	}
	switch {
	case sent.Proposes:
		p.propose(q, sent)
		return
	case sent.Start != "":
		p.durableSend(q, sent)
		return
	case sent.same != nil: // written together with the shorter method
		return
	}
	p.sendDoc(q, sent)
	var body []code
	if sent.Proposer {
		body = append(body, set(sel(m, spec.Proposer), sel(s, "out", "Index").Call()))
	}
	body = append(body, p.timedSend(q)...)
	if q.Source() {
		err := p.v("err")
		body = append(body, jen.If(define(err, sel(s, "out", "Open").Call()), id(err).Op("!=").Nil()).Block(jen.Return(id(err))))
	}
	d := &delivery{part: p, sent: sent, message: id(m)}
	body = append(body, p.declareMissed(sent)...)
	body = append(body, p.begin(q, sent, d.statements())...)
	switch {
	case q.Source() && sent.misses():
		err := p.v("err")
		body = append(body, jen.If(define(err, sel(s, "out", "Sent").Call()), id(err).Op("!=").Nil()).Block(jen.Return(id(err))), jen.Return(p.result(sent)))
	case q.Source():
		body = append(body, jen.Return(sel(s, "out", "Sent").Call()))
	case sent.Error:
		body = append(body, jen.Return(p.result(sent)))
	}
	p.file.Add(p.head(s, q.sender, sent.name, params, results).Block(body...))
	for _, longer := range sent.sameMessage {
		if longer.same == sent {
			call := sel(s, sent.name).Call(id(m))
			if sent.Error {
				call = jen.Return(call)
			}
			p.brief(s, q.sender, longer.name, params, results, call)
		}
	}
	p.file.Line()
}

// begin writes the code that makes the links of a send method, followed by puts. The sender of a
// recorder never has links: its method First records the message and returns false.
func (p *part) begin(q *processor, sent *send, puts []code) (body []code) {
	s, m := p.v("s"), p.v("m")
	var links []*link
	for _, e := range sent.edges {
		if !slices.Contains(links, e.link) {
			links = append(links, e.link)
		}
	}
	if q.recorder != "" {
		done := jen.Return()
		if sent.Error {
			done = jen.Return(jen.Nil())
		}
		first := sel(s, "out", "First").Call(index(links[0].to.constant), id(m), jen.Lit(sent.recorded()))
		if len(puts) == 1 && len(links) == 1 && !sent.Error {
			return []code{jen.If(p.made(s, links[0]).Op("||").Add(first)).Block(puts...)}
		}
		body = append(body, jen.If(p.unmade(s, links[0]).Op("&&").Op("!").Add(first)).Block(done))
		links = links[1:]
	}
	for _, l := range links {
		body = append(body, p.makeLink(s, l)...)
	}
	return append(body, puts...)
}

// recorded are the names of the recorder's fields that get the message.
func (s *send) recorded() string {
	var fields []string
	for _, other := range s.sameMessage {
		if !other.Proposes && (other.whole || s.whole || other == s) {
			fields = append(fields, string(other.field))
		}
	}
	return strings.Join(fields, " ")
}

func (p *part) sendDoc(q *processor, sent *send) {
	var to []string
	fails := false
	for _, e := range sent.edges {
		fails = fails || e.fails()
		to = append(to, e.destination()+e.dropDoc())
	}
	doc := string(sent.name) + " sends a message to " + list(to) + "."
	switch {
	case fails && len(sent.edges) > 1:
		doc += " If a queue is full, it sends nothing and returns topo.ErrFull."
	case fails:
		doc += " If the queue is full, it returns topo.ErrFull."
	}
	doc += sent.missDoc()
	doc += sent.keyDoc()
	if sent.Proposer {
		doc += " It sets Proposer, so that the answer comes to this instance."
	}
	if sent.Error && q.Source() && q.Serve != nil {
		doc += " It waits while a queue is full and returns topo.ErrStopping when the topology stops."
	}
	p.doc("%s", doc)
}

// dropDoc says which message is dropped if the queue of e is full.
func (e *edge) dropDoc() string {
	switch {
	case e.offers():
		return " (dropped if that queue is full)"
	case e.latest():
		return " (if that queue is full, its oldest message is dropped)"
	}
	return ""
}

// missDoc returns the sentence about a receiver that does not exist.
func (s *send) missDoc() string {
	switch {
	case !s.misses():
		return ""
	case len(s.edges) == 1:
		return " If there is no such instance, it counts the message as dropped and returns topo.ErrNoInstance."
	}
	return " If there is no such instance, it counts that copy as dropped, sends the others and returns topo.ErrNoInstance."
}

// keyDoc says what to do when the type of a key changes, because the call of the hash
// function depends on that type.
func (s *send) keyDoc() string {
	var keys []string
	for _, e := range s.edges {
		if k := e.accessText(); e.byKey() && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return " If the type of " + list(keys) + " changes, generate this file again: " + command + "."
}

// list joins words: a, b and c.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// replier writes the method that sends a reply to the instance that sent the request.
func (p *part) replier(q *processor, e *edge) {
	s, m, i := p.v("s"), p.v("m"), p.v("i")
	params := []code{param(m, typeCode(e.Type))}
	p.doc("%s sends a reply to %s.", e.replier(), e.to.Name)
	if to := p.v("to"); e.aimed {
		params = append([]code{param(to, border("Address"))}, params...)
		p.method(s, q.sender, e.replier(), params, nil, p.pass(s, e, sel(to, "Slot").Call(), e.aimedAt(id(to), id(m)))...)
		return
	}
	if e.link.many() {
		params = append([]code{param(i, jen.Int())}, params...)
	}
	p.method(s, q.sender, e.replier(), params, nil, p.pass(s, e, id(i), id(m))...)
}

// replier is the method that sends the replies of a reply edge.
func (e *edge) replier() Ident {
	return "reply" + Ident(e.Message) + "To" + e.to.ident + "For" + Ident(e.ask.Message)
}
