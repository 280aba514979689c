package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// recorder writes the type that replaces the topology in the test of one handler.
//
//	type AuditRecorder struct {
//		sender      AuditSender
//		Note        []Note // all, in order
//		NoteToAudit []Note // only those to audit
//	}
//
//	func RecordAudit() *AuditRecorder             { return new(AuditRecorder) }
//	func (r *AuditRecorder) Sender() *AuditSender { r.sender.out.RecordTo(r); return &r.sender }
func (p *part) recorder(q *processor) {
	r := p.v("r")
	fields := []code{id("sender").Add(id(q.sender))}
	for _, sent := range q.sends {
		if sent.Proposes {
			continue
		}
		field := id(sent.field).Index().Add(typeCode(sent.Type))
		if sent.whole {
			field = remark(field, "all, in order")
		} else {
			field = remark(field, "only those to %s", sent.edges[0].to.Name)
		}
		fields = append(fields, field)
	}
	p.add(jen.Type().Add(id(q.recorder)).Struct(fields...))
	p.brief("", "", mustIdent(q.Record()), nil, []code{ptr(q.recorder)}, jen.Return(jen.New(id(q.recorder))))
	keep, sender := sel(r, "sender", "out", "RecordTo").Call(id(r)), jen.Return(ref(r, "sender"))
	if q.exchangesSender() {
		p.method(r, q.recorder, "Sender", nil, []code{ptr(q.sender)}, set(sel(r, "sender", "out"), jen.New(piper("Out"))), keep, sender)
		return
	}
	p.short(r, q.recorder, "Sender", nil, []code{ptr(q.sender)}, keep.Op(";").Add(sender))
}

// port writes the interface with the methods that the processor's edges need.
//
//	type ParserProcessor interface {
//		ReceiveRaw(m *Raw, out *ParserSender) error
//		ReceiveQuery(ctx context.Context, m Query) (Answer, error)
//	}
func (p *part) port(q *processor) {
	name := mustIdent(q.Port())
	var methods []code
	seen := make(names)
	for _, r := range q.receives {
		switch {
		case r.name == "" && r.edge.Optional:
			continue
		case r.name == "":
			r = p.canonical(q, r.edge)
		}
		if !seen[r.name] && r.writable() {
			seen[r.name] = true
			methods = append(methods, p.portMethod(q, r))
		}
	}
	if r := q.source(p.plan.Bound); r != nil && r.writable() {
		methods = append(methods, p.portMethod(q, r))
	}
	if slices.ContainsFunc(q.receives, func(r *receive) bool { return r.name != "" && !r.writable() }) {
		p.doc("%s lacks the methods whose parameter types are not exported: this package cannot name those types.", name)
	}
	p.add(jen.Type().Add(id(name)).Interface(methods...))
}

// source is the method that the runtime calls on a processor without inputs.
func (q *processor) source(bound bool) *receive {
	if !q.Source() {
		return nil
	}
	switch {
	case q.Ping != nil:
		return &receive{Method: *q.Ping, name: "Ping"}
	case q.Serve != nil:
		return &receive{Method: *q.Serve, name: "Serve"}
	case bound: // the processor never runs; a finding warns about it
		return nil
	}
	m := plan.Method{Error: true}
	if q.sender != "" {
		m.Out = plan.SenderOut
	}
	return &receive{Method: m, name: "Ping"}
}

// canonical is the signature that findings suggest for a handler.
func (p *part) canonical(q *processor, e *edge) *receive {
	handlers := p.plan.Handlers(e.index)
	r := &receive{edge: e, name: Ident(handlers[len(handlers)-1])} // consists of names that the model has checked
	if e.ask != nil {
		r.name = Ident(handlers[0]) // the name with the sender tells a reply from other messages of its type
	}
	r.Reply, r.Error, r.Durable = e.Reply != "", true, e.Durable != nil
	switch {
	case !q.HasSender():
	case q.Type.Import == "":
		r.Out = plan.SenderOut
	default: // a package that this one imports cannot name the sender
		r.Out = plan.InterfaceOut
		for _, s := range q.sends {
			switch {
			case s.Name != "Send"+spec.Exported(s.Message):
			case s.Start != "" && s.Ask != "":
				r.OutNames = append(r.OutNames, s.Ask)
			default:
				r.OutNames = append(r.OutNames, s.Name)
			}
		}
	}
	return r
}

// writable reports whether the method's signature can be written in this package. It
// cannot if another package does not export its interface for the sender.
func (r *receive) writable() bool {
	return r.Out == plan.NoOut || r.Out == plan.SenderOut || r.OutType != nil || len(r.OutNames) > 0
}

func (p *part) portMethod(q *processor, r *receive) code {
	var params, results []code
	if r.Durable {
		params = append(params, param("ctx", durable("Context")))
	}
	if r.Context {
		params = append(params, param("ctx", jen.Qual("context", "Context")))
	}
	if r.edge != nil {
		t, name := typeCode(r.edge.Type), p.v("m")
		if r.edge.from == nil {
			name = p.v("tick")
		}
		if r.Message == plan.ByPointer {
			t = pointer(t)
		}
		params = append(params, param(name, t))
	}
	switch {
	case r.Out == plan.NoOut:
	case r.Out == plan.SenderOut:
		params = append(params, param("out", ptr(q.sender)))
	case r.OutType != nil:
		params = append(params, param("out", typeCode(*r.OutType)))
	default:
		params = append(params, param("out", q.outInterface(&r.Method)))
	}
	if r.Reply {
		results = append(results, typeCode(r.edge.ReplyType))
	}
	if r.Error {
		results = append(results, jen.Error())
	}
	return signature(r.name, params, results)
}

// outInterface writes the interface for the sender as a type literal.
func (q *processor) outInterface(m *plan.Method) code {
	var methods []code
	for _, s := range q.sends {
		if s.Start != "" {
			methods = append(methods, s.durableMethods(m.OutNames)...)
			continue
		}
		if !slices.Contains(m.OutNames, s.Name) {
			continue
		}
		method := id(s.name).Params(typeCode(s.Type))
		if s.Error && !slices.Contains(m.OutMethods, s.Name) {
			method.Error()
		}
		methods = append(methods, method)
	}
	return jen.Custom(jen.Options{Open: "interface{", Close: "}", Separator: ";"}, methods...)
}
