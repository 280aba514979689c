package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
)

// ports are the parts of the file that handlers use. The file compiles without the handlers.
func (m *model) ports() []job {
	jobs := []job{func(p *part) {
		p.portsHead()
		p.indices()
	}}
	return m.each(jobs, func(p *part, q *processor) {
		if q.Machine != nil {
			p.aliases(q)
		}
		for _, l := range q.links {
			if !l.single() {
				p.link(l)
			}
		}
		switch {
		case q.External:
			p.externalSender(q)
		case q.sender != "":
			p.sender(q)
		}
		if q.linker != "" {
			p.linksType(q)
		}
		if q.recorder != "" && !q.External {
			p.recorder(q)
		}
		if !q.External {
			p.inputPorts(q)
			p.letterPorts(q)
			p.port(q)
		}
	})
}

// portsHead writes the comment that explains the declarations for each processor.
func (p *part) portsHead() {
	i := slices.IndexFunc(p.processors, func(q *processor) bool { return q.recorder != "" && !q.External })
	if i < 0 {
		i = slices.IndexFunc(p.processors, func(q *processor) bool { return !q.External })
	}
	if i < 0 {
		return
	}
	q := p.processors[i]
	p.doc("For each processor, such as %s, this file declares what its edges need:", q.Name)
	if q.recorder != "" {
		p.item("%s sends the messages of %s. Use it only on the goroutine of the call that receives it, until that call returns. A method that names a receiver "+
			"sends only to it. A method without an error result does not wait: the runtime calls a handler only if the outgoing queues have room, "+
			"and the messages of one call may exceed their capacity.", q.sender, q.Name)
		p.item("%s makes a %s for tests of a handler. Pass its Sender to the handler. Its fields then hold the messages that the handler sent, in order.", q.Record(), q.recorder)
	}
	p.item("%s lists the methods that the type of %s must have. A message that a handler takes by pointer is valid only until the handler returns.", q.Port(), q.Name)
	p.file.Line()
}

// indices writes the constants of processors and edges.
func (p *part) indices() {
	processors, edges := make([]constant, len(p.processors)), make([]constant, len(p.edges))
	for i, q := range p.processors {
		processors[i] = constant{q.constant, q.Name}
	}
	for i, e := range p.edges {
		edges[i] = constant{e.constant, p.plan.EdgeText(e.index)}
	}
	p.doc("ProcessorIndex numbers the processors in the order of the file.")
	p.indexType("ProcessorIndex", p.tables[0], processors, "String returns the processor's name in the file.")
	p.doc("EdgeIndex numbers the edges of the file, then those for replies, dead letters and state machines.")
	p.indexType("EdgeIndex", p.tables[1], edges, "String returns the edge in the notation of the file.")
}

type constant struct {
	name Ident
	text string
}

// indexType writes a type of indices, with its constants and their names.
//
//	const (
//		ProcessorFeed   ProcessorIndex = iota // feed
//		ProcessorParser                       // parser
//		…
//	)
//
//	var processorNames = [...]string{
//		ProcessorFeed:   "feed",
//		…
//	}
func (p *part) indexType(typ, table Ident, list []constant, stringDoc string) {
	p.add(jen.Type().Add(id(typ)).Int())
	if len(list) > 0 {
		definitions := make([]code, len(list))
		texts := make([]code, len(list))
		for i, c := range list {
			definition := id(c.name)
			if i == 0 {
				definition.Add(id(typ)).Op("=").Iota()
			}
			definitions[i] = remark(definition, "%s", c.text)
			texts[i] = id(c.name).Op(":").Lit(c.text)
		}
		p.add(jen.Const().Defs(definitions...))
		p.add(jen.Var().Add(id(table)).Op("=").Index(jen.Op("...")).String().Add(lines(texts)))
	}
	i := p.v("i")
	var known []code
	if len(list) > 0 {
		known = append(known, jen.If(id(i).Op(">=").Lit(0).Op("&&").Add(id(i)).Op("<").Add(id(typ)).Call(jen.Len(id(table)))).Block(
			jen.Return(id(table).Index(id(i))),
		))
	}
	p.doc("%s", stringDoc)
	p.add(jen.Func().Params(id(i).Add(id(typ))).Id("String").Params().String().Block(append(known,
		jen.Return(jen.Lit(string(typ)+"(").Op("+").Qual("strconv", "Itoa").Call(jen.Int().Call(id(i))).Op("+").Lit(")")),
	)...))
}

// lines is the body of a composite literal with one element on each line.
func lines(elements []code) code {
	return jen.Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, elements...)
}

// linksType writes the interface that an external sender calls to make its links.
//
//	type apiLinks interface {
//		toParser(i int) *apiToParser
//	}
func (p *part) linksType(q *processor) {
	var methods []code
	for _, l := range q.links {
		methods = append(methods, id(l.getter).Params(p.joinParams(l)...).Add(ptr(l.name)))
	}
	for _, e := range q.crossingEdges() {
		methods = append(methods, id(e.fits()).Params(param(p.v("m"), typeCode(e.Type))).Error())
	}
	p.doc("%s makes the links from %s. Each link is made before its first message.", q.linker, q.Name)
	p.add(jen.Type().Add(id(q.linker)).Interface(methods...))
}

// joinParams are the parameters of the method that makes l.
func (p *part) joinParams(l *link) []code {
	if l.many() {
		return []code{param(p.v("i"), jen.Int())}
	}
	return nil
}

// link writes the type of a link that has several queues or an external sender.
//
//	type parserToAudit struct {
//		link piper.Link
//		good queue.Edge[queue.Numbered[Good]]
//		bad  queue.Edge[queue.Numbered[Bad]]
//		stat queue.Latest[Stat]
//	}
func (p *part) link(l *link) {
	p.doc("%s is a link from an instance of %s to one of %s.", l.name, l.from.Name, l.to.Name)
	fields := []code{param("link", piper("Link"))}
	if l.from.External {
		fields = append(fields, param("gate", piper("Gate")))
	}
	for _, e := range l.edges {
		fields = append(fields, param(e.field, e.queueType()))
	}
	p.add(jen.Type().Add(id(l.name)).Struct(fields...))
}

// receiverFields are the fields of a receiver type that hold the link and its queues.
func (l *link) receiverFields() []code {
	if !l.single() {
		return []code{id(l.name)}
	}
	e := l.edges[0]
	return []code{param("link", piper("Link")), param(e.field, e.queueType())}
}

// sentBy is the type to which a sender holds a pointer: the link, or its only queue.
func (l *link) sentBy() code {
	if l.single() {
		return l.edges[0].queueType()
	}
	return id(l.name)
}

// queueIn is the queue of e in l, the value that a sender holds for the link.
func (e *edge) queueIn(l *jen.Statement) *jen.Statement {
	if e.link.single() {
		return l.Clone()
	}
	return dot(l.Clone(), e.field)
}

// queueRef is a pointer to queueIn.
func (e *edge) queueRef(l *jen.Statement) *jen.Statement {
	if e.link.single() {
		return l.Clone()
	}
	return jen.Op("&").Add(e.queueIn(l))
}

// peek is a call that returns up to n messages of the queue x.field.
func peek(x, field Ident, n code) *jen.Statement { return queue("Peek").Call(ref(x, field), n) }

// queueType is the type of the edge's queue.
func (e *edge) queueType() code {
	if e.latest() {
		return queue("Latest").Types(e.elementType()) // its elements have numbers already
	}
	if e.link.Sequenced {
		return queue("Edge").Types(queue("Numbered").Types(e.elementType()))
	}
	return queue("Edge").Types(e.elementType())
}

// elementType is the type of the queue's elements, without their numbers.
func (e *edge) elementType() code {
	if e.aimed {
		return border("Aimed").Types(e.messageType())
	}
	return e.messageType()
}

// messageType is the type of the queue's elements, without their numbers and addresses.
func (e *edge) messageType() code {
	if e.requests() {
		return piper("Request").Types(typeCode(e.Type), typeCode(e.ReplyType))
	}
	return typeCode(e.Type)
}

// inside is the message, or the request, in an element of the queue.
func (e *edge) inside(element *jen.Statement) *jen.Statement {
	if e.aimed {
		return element.Clone().Dot("Message")
	}
	return element
}

// latest, offers and fails report the policy of the edge for a full queue.
func (e *edge) latest() bool { return e.Full == "drop-oldest" }
func (e *edge) offers() bool { return e.Full == "drop-newest" }
func (e *edge) fails() bool  { return e.Full == "fail" }

// policy is the name of that policy in package piper.
func (e *edge) policy() Ident {
	switch {
	case e.fails():
		return "Fail"
	case e.offers(), e.latest():
		return "Drop"
	}
	return "Wait"
}
