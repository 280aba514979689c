package emit

import (
	"strconv"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// watchOf writes the pool's settings for the failures of a processor.
func (p *part) watchOf(q *processor) code {
	w := q.Watch
	then := map[string]Ident{"skip": "ThenSkip", "retry": "ThenRetry"}[w.Then]
	f := fields{key("Attempts", jen.Lit(w.Attempts))}
	f.when(then != "", "Then", piper(then))
	f.when(w.Timeout > 0, "Timeout", duration(w.Timeout))
	f.when(w.Startup > 0 && !w.Isolated, "Startup", duration(w.Startup))
	f.when(w.Shutdown > 0, "Shutdown", duration(w.Shutdown))
	f.when(w.RetryDelay > 0, "Delay", duration(w.RetryDelay))
	f.when(w.RetryMaxDelay > 0, "MaxDelay", duration(w.RetryMaxDelay))
	f.when(w.RetryJitter > 0, "Jitter", fraction(w.RetryJitter))
	return jen.Op("&").Add(piper("Watch")).Values(f...)
}

// fraction turns a number from 0 to 1 into Go.
func fraction(f float64) code { return jen.Op(strconv.FormatFloat(f, 'g', -1, 64)) }

// supervisor writes the supervisor, which decides about restarts.
//
//	Supervisor: supervise.New(supervise.Spec{
//		Processors: []supervise.Processor{
//			{Name: "camera", Instances: 1, Supervised: true, Policy: supervise.OnFailure, MaxRestarts: 3, Delay: 100 * time.Millisecond, MaxDelay: time.Second, Window: time.Minute},
//			{Name: "lidar", Instances: 1, Supervised: true, Policy: supervise.Always},
//			…
//		},
//		Groups: []supervise.Group{
//			{Name: "sensors", Processors: []int{int(ProcessorCamera), int(ProcessorLidar)}, Strategy: supervise.RestForOne, Intensity: 5, Period: 10 * time.Second},
//		},
//	}),
func (p *part) supervisor() code {
	var processors, groups []code
	policies := map[string]Ident{"on-failure": "OnFailure", "always": "Always"}
	for _, q := range p.processors {
		f := fields{key("Name", jen.Lit(q.Name))}
		f.when(!q.External, "Instances", jen.Lit(q.Instances))
		if w := q.Watch; w != nil && w.Restarts {
			policy := policies[w.Policy]
			f.when(true, "Supervised", jen.True())
			f.when(policy != "", "Policy", supervise(policy))
			f.when(w.MaxRestarts > 0, "MaxRestarts", jen.Lit(w.MaxRestarts))
			f.when(w.Delay > 0, "Delay", duration(w.Delay))
			f.when(w.MaxDelay > 0, "MaxDelay", duration(w.MaxDelay))
			f.when(w.Window > 0, "Window", duration(w.Window))
			f.when(w.Jitter > 0, "Jitter", fraction(w.Jitter))
		}
		processors = append(processors, jen.Values(f...))
	}
	strategies := map[string]Ident{"one-for-all": "OneForAll", "rest-for-one": "RestForOne"}
	for _, g := range p.plan.Supervision.Groups {
		var members []code
		for _, i := range g.Processors {
			members = append(members, index(p.processors[i].constant))
		}
		f, strategy := fields{key("Name", jen.Lit(g.Name)), key("Processors", jen.Index().Int().Values(members...))}, strategies[g.Strategy]
		f.when(strategy != "", "Strategy", supervise(strategy))
		groups = append(groups, jen.Values(append(f, key("Intensity", jen.Lit(g.Intensity)), key("Period", duration(g.Period)))...))
	}
	f := fields{key("Processors", jen.Index().Add(supervise("Processor")).Add(lines(processors)))}
	f.when(len(groups) > 0, "Groups", jen.Index().Add(supervise("Group")).Add(lines(groups)))
	return supervise("New").Call(supervise("Spec").Add(lines(f)))
}

// watched writes the methods that the pool calls to replace an instance and to send a dead
// letter.
func (p *part) watched(q *processor) {
	if q.Watch == nil {
		return
	}
	if q.Isolated() {
		p.isolated(q)
	} else {
		p.renew(q)
	}
	p.letters(q)
}

// renew writes the method that replaces an instance in this process.
//
//	func (x *plannerInstance) Renew(_ context.Context) (func(), error) {
//		inputs := new(PlannerInputs)
//		p, err := piper.Construct(x.unit.Instance(), new(Planner), func(in topo.Instance) (*Planner, error) {
//			…
//		})
//		…
//		return func() {
//			x.p = p
//			x.in = inputs
//			x.listen()
//		}, nil
//	}
func (p *part) renew(q *processor) {
	x, value, err, inputs := p.v("x"), p.v("p"), p.v("err"), p.v("inputs")
	fail := jen.If(id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err)))
	var body []code
	how := code(sel(x, "construct"))
	adopt := []code{set(sel(x, "p"), id(value))}
	if q.Track != nil {
		body = append(body, define(inputs, jen.New(id(q.trackerType()))))
		how = p.tracking(q, how, id(inputs))
		adopt = append(adopt, set(sel(x, "in"), id(inputs)))
	}
	body = append(body,
		jen.List(id(value), id(err)).Op(":=").Add(piper("Construct")).Call(
			sel(x, "unit", "Instance").Call(),
			jen.New(typeCode(q.Type)), how),
		fail,
	)
	ctx, call := p.initCall(q, value)
	if call != nil {
		body = append(body, jen.If(define(err, call), id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err))))
	}
	if q.exchangesSender() {
		adopt = append(adopt, jen.If(sel(x, "unit", "IsFresh").Call()).Block(p.freshSender(q)))
	}
	if q.observesInputs() {
		adopt = append(adopt, sel(x, "listen").Call())
	}
	p.doc("Renew replaces an instance that has failed or hangs.")
	p.method(x, q.instance, "Renew", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Func().Params(), jen.Error()},
		append(body, jen.Return(jen.Func().Params().Block(adopt...), jen.Nil()))...)
}

// letters writes the method that sends a dead letter to the processor that receives them.
//
//	func (x *detectorInstance) DeadLetter(d topo.DeadLetter) bool {
//		if x.out.morgue == nil {
//			x.out.out.Link(int(ProcessorMorgue), 0)
//		}
//		queue.Put(x.out.morgue, d)
//		return true
//	}
func (p *part) letters(q *processor) {
	if q.Watch.DeadLetter < 0 {
		return
	}
	x, d := p.v("x"), p.v("d")
	e := p.edges[q.Watch.DeadLetter]
	statements := p.pass(x+".out", e, sel(x, "unit", "Index").Call().Op("%").Lit(e.to.Instances), id(d))
	p.doc("DeadLetter sends a message that could not be handled to %s.", e.to.Name)
	p.method(x, q.instance, "DeadLetter", []code{param(d, topo("DeadLetter"))}, []code{jen.Bool()}, append(statements, jen.Return(jen.True()))...)
}

// exchangesSender reports whether a new instance of the processor gets a new sender,
// because an abandoned handler may still use the old sender.
func (q *processor) exchangesSender() bool { return q.Timed() && q.recorder != "" }

// newSender writes the code that gives a watched instance a sender. In a cluster it runs twice
// for an instance: before it is known which node makes the value, and with the value.
func (p *part) newSender(q *processor) []code {
	if q.Watch == nil {
		return nil
	}
	out, sender := sel(p.v("x"), "out"), jen.New(piper("Out"))
	if q.sender != "" {
		var fields []code
		if q.exchangesSender() {
			fields = append(fields, key("out", jen.New(piper("Out"))))
		}
		sender = jen.Op("&").Add(id(q.sender)).Values(fields...)
	}
	if p.plan.Cluster == nil {
		return []code{set(out, sender)}
	}
	return []code{jen.If(out.Clone().Op("==").Nil()).Block(set(out, sender))}
}

// freshSender writes the code that gives a new instance a sender with its own
// piper.Position, and with the links of the old sender.
func (p *part) freshSender(q *processor) code {
	out := sel(p.v("x"), "out")
	fields := []code{key("out", sel(p.v("x"), "out", "out")), key("position", sel(p.v("x"), "unit", "Position").Call())}
	for _, l := range q.links {
		fields = append(fields, key(string(l.field), sel(p.v("x"), "out", l.field)))
	}
	return set(out, jen.Op("&").Add(id(q.sender)).Add(lines(fields)))
}

// outOf is the piper.Out in the sender of x.
func (p *part) outOf(q *processor, x Ident) code {
	switch {
	case q.exchangesSender():
		return sel(x, "out", "out")
	case q.sender != "":
		return ref(x, "out", "out")
	case q.Watch != nil:
		return sel(x, "out")
	}
	return ref(x, "out")
}

// timedSend writes the beginning of a send method if calls are timed. An abandoned
// goroutine ends here, and a send counts as progress.
func (p *part) timedSend(q *processor) []code {
	if !q.Timed() {
		return nil
	}
	s := p.v("s")
	return []code{jen.If(sel(s, "position", "Leave").Call()).Block(jen.Defer().Add(sel(s, "position", "Enter").Call()))}
}

// returnUserCall writes the body of an instance's method that calls a method of the
// user's type and returns its error.
func (p *part) returnUserCall(q *processor, m *plan.Method, first ...code) []code {
	switch {
	case !m.Error:
		return append(p.userCallHere(q, m, nil, first...), jen.Return(jen.Nil()))
	case !q.CallsTimed():
		return p.userCallHere(q, m, func(call *jen.Statement) code { return jen.Return(call) }, first...)
	}
	err := p.v("err")
	return append(p.userCallHere(q, m, into(err), first...), jen.Return(id(err)))
}
