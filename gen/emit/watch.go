package emit

import (
	"strconv"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// watchOf describes to the pool how a processor is watched.
func (p *part) watchOf(q *processor) code {
	w := q.Watch
	then := map[string]Ident{"skip": "ThenSkip", "retry": "ThenRetry"}[w.Then]
	fields := []code{key("Attempts", jen.Lit(w.Attempts))}
	if then != "" {
		fields = append(fields, key("Then", piper(then)))
	}
	if w.Timeout > 0 {
		fields = append(fields, key("Timeout", duration(w.Timeout)))
	}
	if w.Startup > 0 && !w.Isolated {
		fields = append(fields, key("Startup", duration(w.Startup)))
	}
	if w.Shutdown > 0 {
		fields = append(fields, key("Shutdown", duration(w.Shutdown)))
	}
	if w.RetryDelay > 0 {
		fields = append(fields, key("Delay", duration(w.RetryDelay)))
	}
	if w.RetryMaxDelay > 0 {
		fields = append(fields, key("MaxDelay", duration(w.RetryMaxDelay)))
	}
	if w.RetryJitter > 0 {
		fields = append(fields, key("Jitter", fraction(w.RetryJitter)))
	}
	return jen.Op("&").Add(piper("Watch")).Values(fields...)
}

// fraction is a number from 0 to 1 as Go.
func fraction(f float64) code { return jen.Op(strconv.FormatFloat(f, 'g', -1, 64)) }

// supervisor makes what decides about instances that end.
func (p *part) supervisor() code {
	var processors, groups []code
	policies := map[string]Ident{"on-failure": "OnFailure", "always": "Always"}
	for _, q := range p.processors {
		if q.External {
			processors = append(processors, jen.Values(key("Name", jen.Lit(q.Name))))
			continue
		}
		fields := []code{key("Name", jen.Lit(q.Name)), key("Instances", jen.Lit(q.Instances))}
		w := q.Watch
		if w == nil || !w.Restarts {
			processors = append(processors, jen.Values(fields...))
			continue
		}
		fields = append(fields, key("Supervised", jen.True()))
		if policy := policies[w.Policy]; policy != "" {
			fields = append(fields, key("Policy", supervise(policy)))
		}
		if w.MaxRestarts > 0 {
			fields = append(fields, key("MaxRestarts", jen.Lit(w.MaxRestarts)))
		}
		for _, d := range []struct {
			name string
			key  code
			on   bool
		}{
			{"Delay", duration(w.Delay), w.Delay > 0}, {"MaxDelay", duration(w.MaxDelay), w.MaxDelay > 0}, {"Window", duration(w.Window), w.Window > 0},
		} {
			if d.on {
				fields = append(fields, key(d.name, d.key))
			}
		}
		if w.Jitter > 0 {
			fields = append(fields, key("Jitter", fraction(w.Jitter)))
		}
		processors = append(processors, jen.Values(fields...))
	}
	strategies := map[string]Ident{"one-for-all": "OneForAll", "rest-for-one": "RestForOne"}
	for _, g := range p.plan.Supervision.Groups {
		var members []code
		for _, i := range g.Processors {
			members = append(members, index(p.processors[i].constant))
		}
		fields := []code{key("Name", jen.Lit(g.Name)), key("Processors", jen.Index().Int().Values(members...))}
		if s := strategies[g.Strategy]; s != "" {
			fields = append(fields, key("Strategy", supervise(s)))
		}
		fields = append(fields, key("Intensity", jen.Lit(g.Intensity)), key("Period", duration(g.Period)))
		groups = append(groups, jen.Values(fields...))
	}
	fields := []code{key("Processors", jen.Index().Add(supervise("Processor")).Add(lines(processors)))}
	if len(groups) > 0 {
		fields = append(fields, key("Groups", jen.Index().Add(supervise("Group")).Add(lines(groups))))
	}
	return supervise("New").Call(supervise("Spec").Add(lines(fields)))
}

// watched writes the methods by which the pool makes an instance anew.
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

// renew writes how an instance in this process is made anew.
func (p *part) renew(q *processor) {
	x, value, err, inputs, ctx := p.v("x"), p.v("p"), p.v("err"), p.v("inputs"), p.v("ctx")
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
			topo("Instance").Values(key("Processor", jen.Lit(q.Name)), key("Index", sel(x, "unit", "Index").Call()), key("Number", jen.Lit(q.Instances))),
			how),
		fail,
	)
	if q.Init == nil || !q.Init.Context {
		ctx = "_"
	}
	if q.Init != nil {
		var args []code
		if q.Init.Context {
			args = []code{id(ctx)}
		}
		body = append(body, jen.If(define(err, sel(value, "Init").Call(args...)), id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err))))
	}
	if q.exchangesSender() {
		adopt = append(adopt, jen.If(sel(x, "unit", "IsFresh").Call()).Block(p.freshSender(q)))
	}
	if q.hears() {
		adopt = append(adopt, sel(x, "listen").Call())
	}
	p.doc("Renew makes another instance, to take the place of one that has ended.")
	p.method(x, q.instance, "Renew", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Func().Params(), jen.Error()},
		append(body, jen.Return(jen.Func().Params().Block(adopt...), jen.Nil()))...)
}

// letters writes how a message that cannot be handled is sent to where those go.
func (p *part) letters(q *processor) {
	if q.Watch.DeadLetter < 0 {
		return
	}
	x, d := p.v("x"), p.v("d")
	e := p.edges[q.Watch.DeadLetter]
	out := x + ".out"
	get, statements := p.at(out, e.link), p.made(out, e.link)
	if e.link.many() {
		get.Call(sel(x, "unit", "Index").Call().Op("%").Lit(e.to.Instances))
	}
	if e.link.Sequenced {
		l := p.v("l")
		statements = append(append(statements, define(l, get)), p.put(e, id(l), id(d))...)
	} else {
		statements = append(statements, p.put(e, get, id(d))...)
	}
	p.doc("DeadLetter sends a message that could not be handled to %s.", e.to.Name)
	p.method(x, q.instance, "DeadLetter", []code{param(d, topo("DeadLetter"))}, []code{jen.Bool()}, append(statements, jen.Return(jen.True()))...)
}

// exchangesSender reports whether a new instance of the processor gets a new
// sender, since an abandoned handler may have kept the one before.
func (q *processor) exchangesSender() bool { return q.Timed() && q.recorder != "" }

// newSender gives a watched instance a sender.
func (p *part) newSender(q *processor) []code {
	out := sel(p.v("x"), "out")
	if q.sender == "" {
		return []code{set(out, jen.New(piper("Out")))}
	}
	var fields []code
	if q.exchangesSender() {
		fields = append(fields, key("out", jen.New(piper("Out"))))
	}
	return []code{set(out, jen.Op("&").Add(id(q.sender)).Values(fields...))}
}

// freshSender gives a new instance a sender with its own life, and with the links
// of the one before.
func (p *part) freshSender(q *processor) code {
	out := sel(p.v("x"), "out")
	fields := []code{key("out", sel(p.v("x"), "out", "out")), key("life", sel(p.v("x"), "unit", "Life").Call())}
	for _, l := range q.links {
		fields = append(fields, key(string(l.field), sel(p.v("x"), "out", l.field)))
	}
	return set(out, jen.Op("&").Add(id(q.sender)).Add(lines(fields)))
}

// outOf is the pool's part of the sender of x.
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

// timedSend begins a method that sends, where calls are timed: a goroutine that
// was abandoned ends here, and what is sent is progress.
func (p *part) timedSend(q *processor) []code {
	if !q.Timed() {
		return nil
	}
	s := p.v("s")
	return []code{jen.If(sel(s, "life", "Leave").Call()).Block(jen.Defer().Add(sel(s, "life", "Enter").Call()))}
}

// called writes the body of an instance's method that calls one of the user's and
// returns its error.
func (p *part) called(q *processor, m *plan.Method, first ...code) []code {
	before, call, after := p.outside(q, m, first...)
	err := p.v("err")
	if !m.Error {
		return append(append(append(before, call), after...), jen.Return(jen.Nil()))
	}
	if len(after) == 0 {
		return append(before, jen.Return(call))
	}
	return append(append(append(before, define(err, call)), after...), jen.Return(id(err)))
}
