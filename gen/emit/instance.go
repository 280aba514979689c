package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// instance writes the type of a processor's instances.
func (p *part) instance(q *processor) {
	out := jen.Add(pool("Out"))
	if q.sender != "" {
		out = id(q.sender)
	}
	p.doc("%s is an instance of %s.", q.instance, q.Name)
	p.add(jen.Type().Add(id(q.instance)).Struct(
		pool("Unit"),
		id("out").Add(out),
		param("p", pointer(typeCode(q.typ))),
	))
}

// maker writes the function that makes all instances of a processor.
func (p *part) maker(q *processor) {
	t, construct, i, x, err := p.v("t"), p.v("construct"), p.v("i"), p.v("x"), p.v("err")
	instances := p.v("instances")
	description := topo("Instance").Values(
		key("Processor", jen.Lit(q.Name)), key("Index", id(i)), key("Number", jen.Len(id(instances))))
	out := ref(x, "out")
	loop := []code{
		define(x, ref(instances).Index(id(i))),
		jen.If(
			jen.List(sel(x, "p"), id(err)).Op("=").Add(pool("Construct")).Call(description, id(construct)),
			id(err).Op("!=").Nil(),
		).Block(jen.Return(id(err))),
	}
	if q.sender != "" {
		loop = append(loop, set(sel(x, "out", "links"), p.joinerOf(q)))
		out = ref(x, "out", "out")
	}
	loop = append(loop, sel(t, "pool", "Adopt").Call(index(q.constant), id(x), ref(x, "Unit"), out))
	for _, e := range q.timers {
		loop = append(loop, p.startTimer(e)...)
	}
	p.doc("%s makes the instances of %s.", q.maker, q.Name)
	params := []code{param(t, ptr("Topology")), param(construct, q.constructorType())}
	p.add(jen.Func().Add(id(q.maker)).Params(params...).Params(param(err, jen.Error())).Block(
		jen.If(id(construct).Op("==").Nil()).Block(set(id(construct), p.standard(q))),
		define(instances, sel(t, q.field).Index(jen.Empty(), jen.Empty())),
		jen.For(id(i).Op(":=").Range().Add(id(instances))).Block(loop...),
		jen.Return(jen.Nil()),
	))
}

// joinerOf is the topology as what makes the links from q.
func (p *part) joinerOf(q *processor) code {
	return id(q.joiner).Values(id(p.v("t")))
}

// startTimer writes how instance i gets its timer.
func (p *part) startTimer(e *edge) []code {
	t, x, i := p.v("tick"), p.v("x"), p.v("i")
	start := []code{
		define(t, jen.Op("&").Add(id(e.ticker)).Values(key("to", id(x)))),
		sel(t, "Start").Call(id(t), ref(x, "Unit"), index(e.constant)),
	}
	if e.Route == plan.Range && (e.Offset > 0 || e.Count < e.to.Instances) {
		return []code{jen.If(id(i).Op(">=").Lit(e.Offset).Op("&&").Add(id(i)).Op("<").Lit(e.Offset + e.Count)).Block(start...)}
	}
	if len(e.to.timers) > 1 {
		return []code{jen.Block(start...)}
	}
	return start
}

// adapter writes the type that passes a sender as an interface without errors.
func (p *part) adapter(q *processor, a *adapter) {
	o, m := p.v("o"), p.v("m")
	p.doc("%s passes a sender of %s where the errors of its methods are not wanted. They only say that the topology is stopping.", a.name, q.Name)
	p.add(jen.Type().Add(id(a.name)).Struct(ptr(q.sender)))
	for _, s := range q.sends {
		if !slices.Contains(a.methods, s.Name) {
			continue
		}
		p.add(jen.Func().Params(id(o).Add(id(a.name))).Add(id(s.name)).Params(param(m, typeCode(s.Type))).
			Add(oneLine(jen.Id("_").Op("=").Add(sel(o, q.sender, s.name)).Call(id(m)))))
	}
}

// outArgument is how a method of q gets its sender; nil: it does not.
func (p *part) outArgument(q *processor, method *plan.Method) code {
	switch method.Out {
	case plan.NoOut:
		return nil
	case plan.AdaptedOut:
		return id(q.adapter(method).name).Values(ref(p.v("x"), "out"))
	}
	return ref(p.v("x"), "out")
}

// lifecycle writes those methods of an instance that the processor's type has.
func (p *part) lifecycle(q *processor) {
	x, n, err, budget, ctx := p.v("x"), p.v("n"), p.v("err"), p.v("budget"), p.v("ctx")
	call := func(method *plan.Method, context code) *jen.Statement {
		var args []code
		if method.Context {
			args = append(args, context)
		}
		if out := p.outArgument(q, method); out != nil {
			args = append(args, out)
		}
		return sel(x, "p").Dot(method.Name).Call(args...) // one of the five names below
	}
	contextParam := func(method *plan.Method) []code {
		name := ctx
		if !method.Context {
			name = "_"
		}
		return []code{param(name, jen.Qual("context", "Context"))}
	}
	handlerContext := sel(x, "Context").Call()
	method := func(name Ident, m *plan.Method, params []code, context code) {
		c := call(m, context)
		if m.Error {
			p.short(x, q.instance, name, params, []code{jen.Error()}, jen.Return(c))
		} else {
			p.method(x, q.instance, name, params, []code{jen.Error()}, c, jen.Return(jen.Nil()))
		}
	}
	if q.Init != nil {
		method("Init", q.Init, contextParam(q.Init), id(ctx))
	}
	if q.Ping != nil {
		p.method(x, q.instance, "Ping", []code{param(budget, jen.Int())}, []code{param(n, jen.Int()), param(err, jen.Error())},
			jen.For(id(n).Op("<").Add(id(budget)).Op("&&").Op("!").Add(sel(x, "Hold")).Call()).Block(
				jen.If(define(err, call(q.Ping, handlerContext)), id(err).Op("!=").Nil()).Block(jen.Return(id(n), id(err))),
				id(n).Op("++"),
			),
			jen.Return(id(n), jen.Nil()),
		)
	}
	if q.Serve != nil {
		method("Serve", q.Serve, contextParam(q.Serve), id(ctx))
	}
	if q.Finish != nil {
		method("Finish", q.Finish, nil, handlerContext)
	}
	if q.Close != nil {
		method("Close", q.Close, nil, nil)
	}
}

// ticker writes the link from a timer.
func (p *part) ticker(q *processor, e *edge) {
	t, tick, ok, n, err, x := p.v("t"), p.v("tick"), p.v("ok"), p.v("n"), p.v("err"), p.v("x")
	h := &handler{part: p, receive: q.receive(e), of: q}
	p.doc("%s hands %s a tick every %v.", e.ticker, q.Name, e.Every)
	p.add(jen.Type().Add(id(e.ticker)).Struct(pool("Ticker"), param("to", ptr(q.instance))))
	call := h.call(id(tick))
	body := []code{
		jen.List(id(tick), id(ok)).Op(":=").Add(sel(t, "Take")).Call(),
		jen.If(jen.Op("!").Add(id(ok))).Block(jen.Return(jen.Lit(0), jen.Nil())),
		define(x, sel(t, "to")),
	}
	if h.Error {
		body = append(body, jen.Return(jen.Lit(1), call))
	} else {
		body = append(body, call, jen.Return(jen.Lit(1), jen.Nil()))
	}
	p.method(t, e.ticker, "Drain", []code{param("_", jen.Int())}, []code{param(n, jen.Int()), param(err, jen.Error())}, body...)
}
