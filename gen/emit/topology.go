package emit

import (
	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// command updates the generated files.
const command = "go tool topogen build"

// wiring are the parts of the file that connects the processors.
func (m *model) wiring() []job {
	jobs := []job{func(p *part) {
		p.guards()
		p.constructors()
		p.topology()
		p.construct()
		p.openNode()
		p.openDurable()
		p.client()
		p.methods()
		p.crossings()
		p.wiringHead()
	}}
	return m.each(jobs, func(p *part, q *processor) {
		if q.External {
			p.linker(q)
			p.guest(q)
			return
		}
		if q.Constructor() != "" {
			p.machineConstructor(q)
		}
		if q.InstancesType() != "" {
			p.machineInstances(q)
		}
		p.instance(q)
		p.adopted(q)
		for _, a := range q.adapters {
			p.adapter(q, a)
		}
		p.lifecycle(q)
		p.durableWoken(q)
		p.inputMethods(q)
		p.watched(q)
		p.linker(q)
		p.arrive(q, q.instance, p.v("x")+".out")
		for _, l := range q.incomingLinks {
			if l.first {
				p.receiverSide(q, l)
			}
		}
		for _, e := range q.timers {
			p.ticker(q, e)
		}
	})
}

// remarkWidth is the length up to which a comment is at the end of an assertion's line. A longer
// comment is above the line.
const remarkWidth = 60

// guards writes assertions that fail to compile if the runtime, a handler or a message
// type no longer matches this file. A comment next to them contains the command to run.
//
//	_ FeedProcessor = (*Feed)(nil)
func (p *part) guards() {
	p.doc("If this does not compile, the runtime in go.mod does not match this file. Run:")
	p.commandLine()
	p.add(jen.Const().Id("_").Op("=").Add(piper("Generated10")))
	p.useBuildConstant()
	var lines []code
	for _, q := range p.processors {
		if q.External {
			continue
		}
		none := func() code { return jen.Parens(pointer(typeCode(q.Type))).Call(jen.Nil()) }
		assertion, neededFor := id("_").Add(id(mustIdent(q.Port()))).Op("=").Add(none()), p.neededFor(q)
		if len(neededFor) == 1 && len(neededFor[0]) <= remarkWidth {
			assertion = remark(assertion, "%s", neededFor[0])
		} else {
			for _, edges := range neededFor {
				lines = append(lines, comment("%s", edges)...)
			}
		}
		lines = append(lines, assertion)
		if methods := p.lifecycleMethods(q); len(methods) > 0 {
			lines = append(lines, id("_").Interface(methods...).Op("=").Add(none()))
		}
	}
	if len(lines) == 0 {
		return
	}
	p.doc("If a line does not compile, the type lacks a method that %s needs, or the signature of the method has changed. "+
		"Fix the method or %s, then run:", p.plan.Source, p.plan.Source)
	p.commandLine()
	p.add(jen.Var().Defs(lines...))
}

// lifecycleMethods lists the lifecycle methods of the user's type that its interface in the
// ports does not have. A state machine has no such methods, because the runtime implements it.
func (p *part) lifecycleMethods(q *processor) (methods []code) {
	if q.Machine != nil {
		return nil
	}
	port := q.source(true)
	for _, m := range []*plan.Method{q.Init, q.Ping, q.Serve, q.Finish, q.Close} {
		if m == nil || port != nil && m.Name == string(port.name) {
			continue
		}
		if r := (&receive{Method: *m, name: mustIdent(m.Name)}); r.writable() {
			methods = append(methods, p.portMethod(q, r))
		}
	}
	return methods
}

// commandLine ends a comment with the command, indented as code.
func (p *part) commandLine() {
	p.file.Comment("//")
	p.file.Comment("//\t" + command)
}

// neededFor lists the methods, each with the edges that need it, for comments.
func (p *part) neededFor(q *processor) []string {
	var neededFor []string
	numbers := make(map[Ident]int)
	for _, r := range q.receives {
		if r.name == "" { // the method is optional
			continue
		}
		words := p.edgeText(r.edge)
		if r.edge.DeadLetter {
			words = "dead letters of " + r.edge.from.Name
		}
		if r.edge.ask != nil {
			words = "the reply to " + p.edgeText(r.edge.ask)
		}
		if i, known := numbers[r.name]; known {
			neededFor[i] += "; " + words
			continue
		}
		numbers[r.name] = len(neededFor)
		neededFor = append(neededFor, string(r.name)+" for "+words)
	}
	return neededFor
}

// constructors writes the struct Processors.
//
//	type Processors struct {
//		Feed   func(topo.Instance) (*Feed, error)
//		Parser func(topo.Instance) (*Parser, error)
//		Audit  func(topo.Instance) (*Audit, error)
//	}
func (p *part) constructors() {
	var fields []code
	for _, q := range p.processors {
		if q.External {
			continue
		}
		if q.Isolated() {
			fields = append(fields, comment("%s must be nil: %s runs in its own process, which makes the instances.", q.ident, q.Name)...)
		}
		fields = append(fields, param(q.ident, q.constructorType()))
	}
	p.doc("Processors holds the constructors of instances. If a field is nil, New calls the function that %s names under new, or makes a zero value.", p.plan.Source)
	p.add(jen.Type().Id("Processors").Struct(fields...))
}

// constructorType is the type of a processor's field in Processors.
func (q *processor) constructorType() code {
	return jen.Func().Params(topo("Instance")).Params(pointer(typeCode(q.Type)), jen.Error())
}

// topology writes:
//
//	type Topology struct {
//		pool  *piper.Pool
//		graph *graph.Graph[ProcessorIndex, EdgeIndex]
//
//		feed   [1]feedInstance
//		parser [2]parserInstance
//		audit  [1]auditInstance
//		api    ApiSender
//	}
func (p *part) topology() {
	fields := []code{
		param("pool", pointer(piper("Pool"))),
		id("graph").Add(p.graphType()),
		jen.Line(),
	}
	if p.plan.Cluster != nil {
		fields = append(fields[:2], remark(param("node", pointer(cluster("Node"))), "nil if this process runs the whole topology"), jen.Line())
	}
	for _, q := range p.processors {
		field := id(q.field)
		if q.External {
			field.Add(id(q.sender))
		} else {
			field.Index(jen.Lit(q.slots())).Add(id(q.instance))
		}
		fields = append(fields, field)
	}
	p.doc("Topology holds the instances and links of %s. New makes one.", p.plan.Name)
	p.add(jen.Type().Id("Topology").Struct(fields...))
}

func (p *part) graphType() code {
	return pointer(jen.Qual(graphPath, "Graph").Types(id("ProcessorIndex"), id("EdgeIndex")))
}

// construct writes New.
//
//	func New(processors Processors, opts ...pool.Option) (*Topology, error) {
//		t := new(Topology)
//		var err error
//		t.pool, err = piper.New(piper.Spec{
//			Name:     "sample",
//			Topology: t,
//			…
//		}, opts...)
//		…
//		t.graph = piper.GraphOf[ProcessorIndex, EdgeIndex](t.pool)
//		return t, nil
//	}
func (p *part) construct() {
	t, err, processors, opts := p.v("t"), p.v("err"), p.v("processors"), p.v("opts")
	fail := jen.If(id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err)))
	body := []code{
		define(t, jen.New(jen.Id("Topology"))),
		jen.Var().Add(id(err)).Error(),
		jen.List(sel(t, "pool"), id(err)).Op("=").Add(piper("New")).Call(p.spec(), id(opts).Op("...")),
		fail,
	}
	for _, q := range p.processors {
		if !q.External {
			continue
		}
		body = append(body, set(sel(t, q.field, "door"), sel(t, "pool", "External").Call(index(q.constant))))
		if len(q.links) > 0 {
			body = append(body, set(sel(t, q.field, "links"), jen.Op("&").Add(id(q.joiner)).Values(id(t))))
		}
	}
	body = append(body,
		set(sel(t, "graph"), piper("GraphOf").Types(id("ProcessorIndex"), id("EdgeIndex")).Call(sel(t, "pool"))),
		jen.Return(id(t), jen.Nil()),
	)
	p.doc("New makes the instances and connects them. Nothing runs before Run.")
	p.add(jen.Func().Id("New").Params(
		param(processors, jen.Id("Processors")),
		id(opts).Op("...").Add(pool("Option")),
	).Params(ptr("Topology"), jen.Error()).Block(body...))
}

// spec writes the description of the topology for the runtime.
func (p *part) spec() code {
	var processors, edges []code
	for _, q := range p.processors {
		f := fields{key("Name", jen.Lit(q.Name)), key("Group", jen.Lit(q.Group))}
		f.when(q.Blocking || q.Isolated(), "Blocking", jen.True())
		f.when(q.Machine != nil && q.Machine.Controller < 0, "Stays", jen.True())
		f.when(q.External, "External", jen.True())
		f.when(q.Ping != nil, "Ping", jen.True())
		f.when(q.Serve != nil, "Serve", jen.True())
		f.when(q.Finish != nil || q.observesInputs(), "Finish", jen.True())
		f.when(q.observesInputs(), "Events", jen.True())
		if q.Watch != nil {
			f = append(f, key("Watch", p.watchOf(q)))
		}
		if !q.External {
			f.when(q.others, "Others", jen.True())
			f = append(f, key("Instances", jen.Lit(q.slots())), key("Instance", p.makeInstance(q)))
		}
		if q.sendsAcross() {
			f = append(f, key("Guest", p.makeGuest(q)))
		}
		processors = append(processors, jen.Values(f...))
	}
	for _, e := range p.edges {
		from := jen.Lit(-1)
		if e.from != nil {
			from = index(e.from.constant)
		}
		f, policy := fields{key("From", from), key("To", index(e.to.constant)), key("Message", jen.Lit(e.Message)), key("Capacity", jen.Lit(e.capacity()))}, e.policy()
		f.when(e.from == nil, "Every", duration(e.Every))
		f.when(e.Durable != nil, "Durable", jen.True())
		f.when(e.from != nil && policy != "Wait", "Full", piper(policy))
		f.when(e.Crosses && e.requests(), "Reply", jen.True())
		f.when(e.aimed, "Aimed", jen.True())
		f.when(p.plan.Cluster != nil && e.from != nil && e.from.External && !e.Crosses && e.Durable == nil, "Stays", jen.True())
		f.when(e.Delivery == spec.AtMostOnce, "AtMostOnce", jen.True())
		edges = append(edges, jen.Values(f...))
	}
	f := fields{
		key("Name", jen.Lit(p.plan.Name)),
		key("Topology", id(p.v("t"))),
		key("Processors", jen.Index().Add(piper("Processor")).Add(lines(processors))),
		key("Edges", jen.Index().Add(piper("Edge")).Add(lines(edges))),
		key("Workers", jen.Lit(p.plan.Pool.Workers)),
		key("Batch", jen.Lit(p.plan.Pool.Batch)),
		key("Rebalance", duration(p.plan.Pool.Rebalance)),
		key("DrainTimeout", duration(p.plan.Pool.DrainTimeout)),
	}
	f.when(p.plan.Pool.MessageLimit > 0, "MessageLimit", jen.Lit(int(p.plan.Pool.MessageLimit)))
	f.when(p.plan.Pool.CycleLimit > 0, "CycleLimit", jen.Lit(p.plan.Pool.CycleLimit))
	if p.plan.Errors != nil {
		f = append(f, key("Errors", p.errors(p.plan.Errors)))
	}
	if p.plan.Supervision != nil {
		f = append(f, key("Supervisor", p.supervisor()))
	}
	f.when(p.plan.Cluster != nil, "Cluster", sel(p.v("t"), "openNode"))
	f.when(p.plan.Durable != nil, "Durable", sel(p.v("t"), "openDurable"))
	f.when(p.plan.FaultLog > 0, "FaultLog", duration(p.plan.FaultLog))
	return piper("Spec").Add(lines(f))
}

// errors is the function that opens the error store when the topology starts to run.
func (p *part) errors(e *plan.Errors) code {
	settings := fields{
		key("Path", jen.Lit(e.Path)),
		key("Top", jen.Lit(e.Top)),
		key("Keep", duration(e.Keep)),
		key("DumpEvery", duration(e.DumpEvery)),
	}
	settings.when(e.Crash, "Crash", jen.True())
	return jen.Func().Params().Params(piper("Recorder"), jen.Error()).Block(
		jen.Return(jen.Qual(errtopPath, "Open").Call(jen.Qual(errtopPath, "Settings").Add(lines(settings)))))
}

// capacity is the number of messages that the edge's queue holds. A timer's queue holds one tick.
func (e *edge) capacity() int {
	if e.from == nil {
		return 1
	}
	return e.Capacity
}

// methods writes the methods of Topology.
func (p *part) methods() {
	t := p.v("t")
	method := func(name Ident, params, results []code, body code) {
		p.short(t, "Topology", name, params, results, jen.Return(body))
	}
	p.doc("Run returns when all processors have finished, when ctx has ended and the queues are drained, or when a handler has failed. Call it only once.")
	ctx, seed, i := p.v("ctx"), p.v("seed"), p.v("i")
	method("Run", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()}, sel(t, "pool", "Run").Call(id(ctx)))
	p.doc("Stepper replaces Run in tests: it runs the topology on the caller's goroutine, with the same steps for the same seed.")
	method("Stepper", []code{param(seed, jen.Uint64())}, []code{pointer(pool("Stepper"))}, sel(t, "pool", "Stepper").Call(id(seed)))
	p.doc("Snapshot returns the current counts of messages and failures, by index.")
	method("Snapshot", nil, []code{pool("Snapshot")}, sel(t, "pool", "Snapshot").Call())
	p.doc("Tree returns the graph of the processors and edges, by index.")
	method("Tree", nil, []code{p.graphType()}, sel(t, "graph"))
	if p.plan.Cluster != nil {
		p.doc("Cluster returns what this node knows about the cluster. It returns nil if this process runs the whole topology.")
		method("Cluster", nil, []code{pointer(cluster("View"))}, sel(t, "node", "View").Call())
	}
	var plain []*processor
	for _, q := range p.processors {
		if q.External {
			p.doc("%s returns the sender of %s.", q.ident, q.Name)
			method(q.ident, nil, []code{ptr(q.sender)}, ref(t, q.field))
			continue
		}
		if q.Isolated() {
			continue // the instance is not in the memory of this process
		}
		if q.Machine != nil {
			if name := q.InstancesType(); name != "" {
				p.doc("%s returns the instances of the state machine %s.", q.ident, q.Name)
				method(q.ident, nil, []code{id(mustIdent(name))}, id(mustIdent(name)).Values(id(t)))
				continue
			}
			p.doc("%s returns the state machine %s.", q.ident, q.Name)
			method(q.ident, nil, []code{pointer(typeCode(q.Type))}, sel(t, q.field).Index(jen.Lit(0)).Dot("p"))
			continue
		}
		plain = append(plain, q)
	}
	for n, q := range plain {
		if n == 0 {
			if p.plan.Cluster == nil {
				p.doc("%s and the methods below return instance i of a processor, for use before and after Run only.", q.ident)
			} else {
				p.doc("%s and the methods below return instance i of a processor, for use before and after Run only. They return nil for an instance that another node runs. "+
					"On a node, Run makes the instances.", q.ident)
			}
		}
		instances := sel(t, q.field)
		if q.others { // the last element is not an instance
			instances.Index(jen.Empty(), jen.Lit(q.Instances))
		}
		p.brief(t, "Topology", q.ident, []code{param(i, jen.Int())}, []code{pointer(typeCode(q.Type))}, jen.Return(instances.Index(id(i)).Dot("p")))
	}
	p.file.Line()
}
