package emit

import (
	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// input is an edge to a processor that observes the state of its inputs.
type input struct {
	*plan.Input
	edge     *edge
	ident    Ident // the field of the tracker
	constant Ident // PricingInputOrder
}

// input returns the input of an edge.
func (q *processor) input(e *edge) *input {
	for _, in := range q.inputs {
		if in.edge == e {
			return in
		}
	}
	panic(badName("edge " + e.Ident + " is not an input"))
}

// Types of the ports: PricingInput, PricingInputs.
func (q *processor) inputType() Ident   { return q.ident + "Input" }
func (q *processor) trackerType() Ident { return q.ident + "Inputs" }

func supervise(name Ident) *jen.Statement { return jen.Qual(supervisePath, string(name)) }

// inputPorts writes the constants of a processor's inputs and their tracker.
//
//	type PlannerInputs struct {
//		Points    supervise.Tracked[Points]
//		Detection supervise.Tracked[Detection]
//		Note      supervise.Tracked[Note]
//	}
func (p *part) inputPorts(q *processor) {
	if len(q.inputs) == 0 {
		return
	}
	var constants []constant
	var fields, anyClosed, closed []code
	in, list := p.v("in"), p.v("list")
	closed = append(closed, jen.Var().Add(id(list)).Index().Add(id(q.inputType())))
	for _, i := range q.inputs {
		text := p.plan.EdgeText(i.Edge)
		constants = append(constants, constant{i.constant, text})
		fields = append(fields, param(i.ident, supervise("Tracked").Types(typeCode(i.edge.Type))))
		is := sel(in, i.ident, "Closed").Call()
		anyClosed = append(anyClosed, is)
		closed = append(closed, jen.If(is).Block(set(id(list), jen.Append(id(list), id(i.constant)))))
	}
	p.doc("%s numbers the inputs of %s in the order of the edges.", q.inputType(), q.Name)
	p.indexType(q.inputType(), q.inputNames, constants, "String returns the edge in the notation of the file.")
	p.doc("%s holds the state and the last message of each input of %s. If the processor has a method Inputs(*%s), the runtime calls it before Init. "+
		"Handlers may use the argument later.", q.trackerType(), q.Name, q.trackerType())
	p.add(jen.Type().Add(id(q.trackerType())).Struct(fields...))
	p.doc("AnyClosed reports whether an input is closed, or has been silent for longer than its timeout.")
	p.short(in, q.trackerType(), "AnyClosed", nil, []code{jen.Bool()}, jen.Return(joinedBy("||", anyClosed)))
	which, state := p.v("i"), p.v("s")
	var states, became []code
	for _, i := range q.inputs {
		states = append(states, jen.Case(id(i.constant)).Block(jen.Return(sel(in, i.ident, "State").Call())))
		became = append(became, jen.Case(id(i.constant)).Block(sel(in, i.ident, "Became").Call(id(state))))
	}
	p.doc("State returns the state of an input.")
	p.method(in, q.trackerType(), "State", []code{param(which, id(q.inputType()))}, []code{supervise("State")},
		jen.Switch(id(which)).Block(states...), jen.Return(supervise("Closed")))
	if q.Track != nil {
		p.doc("became sets the state of an input.")
		p.method(in, q.trackerType(), "became", []code{param(which, id(q.inputType())), param(state, supervise("State"))}, nil, jen.Switch(id(which)).Block(became...))
	}
	p.doc("Closed lists the inputs that are closed, or have been silent for longer than their timeout.")
	p.method(in, q.trackerType(), "Closed", nil, []code{jen.Op("[]" + string(q.inputType()))}, append(closed, jen.Return(id(list)))...)
}

// letterPorts writes, for each edge to q whose messages may become dead letters,
// the function that returns such a message with its type.
//
//	func DeadLetterCameraDetectorFrame(d topo.DeadLetter) (m Frame, ok bool) {
//		return topo.Letter[Frame](d, int(EdgeCameraDetectorFrame))
//	}
func (p *part) letterPorts(q *processor) {
	for _, e := range q.Incoming {
		if !p.plan.LeavesLetters(e) {
			continue
		}
		edge, d, m, ok := p.edges[e], p.v("d"), p.v("m"), p.v("ok")
		name := "DeadLetter" + mustIdent(edge.Ident)
		p.doc("%s returns the message of a dead letter of edge %s. For a dead letter of another edge, ok is false.", name, p.edgeText(edge))
		p.add(jen.Func().Add(id(name)).Params(param(d, topo("DeadLetter"))).Params(param(m, typeCode(edge.Type)), param(ok, jen.Bool())).
			Add(oneLine(jen.Return(topo("Letter").Types(typeCode(edge.Type)).Call(id(d), index(edge.constant))))))
	}
}

// inputMethods writes the methods by which an instance observes its inputs.
//
//	func (x *plannerInstance) listen() {
//		x.inputs.Init(supervise.Input{Timeout: 300 * time.Millisecond}, supervise.Input{Timeout: 500 * time.Millisecond, ArmAtStart: true}, supervise.Input{})
//		x.inputs.Start(x.unit.Inputs().Now())
//		x.wait()
//	}
//
//	func (x *plannerInstance) Alarm(now time.Duration) (err error) {
//		for _, i := range x.inputs.Expire(now, func(i int) bool { return x.unit.Inputs().HasQueued(int(plannerInputEdges[i])) }) {
//			x.unit.Inputs().CountTimeout(int(plannerInputEdges[i]))
//			x.in.became(PlannerInput(i), supervise.Broken)
//			err = errors.Join(err, x.p.InputClosed(PlannerInput(i)))
//		}
//		x.wait()
//		return err
//	}
func (p *part) inputMethods(q *processor) {
	if !q.observesInputs() {
		return
	}
	x, i, err, at, ok, now := p.v("x"), p.v("i"), p.v("err"), p.v("at"), p.v("ok"), p.v("now")
	unit := func(method string) *jen.Statement { return sel(x, "unit", "Inputs").Call().Dot(method) }
	var edges, settings []code
	for _, in := range q.inputs {
		edges = append(edges, id(in.edge.constant))
		var f fields
		f.when(in.Timeout > 0, "Timeout", duration(in.Timeout))
		f.when(in.ArmAtStart, "ArmAtStart", jen.True())
		settings = append(settings, supervise("Input").Values(f...))
	}
	p.add(jen.Var().Add(id(q.inputEdges)).Op("=").Index(jen.Op("...")).Add(id("EdgeIndex")).Values(edges...))
	p.doc("listen starts to watch the inputs of a new instance.")
	body := []code{sel(x, "inputs", "Init").Call(settings...), sel(x, "inputs", "Start").Call(unit("Now").Call())}
	if q.TimesInputs() {
		body = append(body, sel(x, "wait").Call())
	}
	p.method(x, q.instance, "listen", nil, nil, body...)
	if q.TimesInputs() {
		p.doc("wait sets the alarm to the next time at which an input may time out.")
		p.method(x, q.instance, "wait", nil, nil,
			jen.If(jen.List(id(at), id(ok)).Op(":=").Add(sel(x, "inputs", "Due")).Call(), id(ok)).Block(unit("SetAlarm").Call(id(at))))
		waits := jen.Func().Params(id(i).Int()).Bool().Add(oneLine(jen.Return(unit("HasQueued").Call(jen.Int().Call(id(q.inputEdges).Index(id(i)))))))
		turn := append([]code{unit("CountTimeout").Call(jen.Int().Call(id(q.inputEdges).Index(id(i))))}, p.became(q, id(q.inputType()).Call(id(i)), "Broken")...)
		turn = append(turn, p.notify(q, q.closedHere(), id(q.inputType()).Call(id(i)))...)
		if m := q.closedHere(); m != nil && m.Error && !q.goesOn() {
			turn = append(turn, jen.If(id(err).Op("!=").Nil()).Block(jen.Break()))
		}
		p.doc("Alarm reports the inputs that have been silent for too long.")
		p.method(x, q.instance, "Alarm", []code{param(now, jen.Qual("time", "Duration"))}, []code{jen.Params(param(err, jen.Error()))},
			jen.For(jen.List(jen.Id("_"), id(i)).Op(":=").Range().Add(sel(x, "inputs", "Expire")).Call(id(now), waits)).Block(turn...),
			sel(x, "wait").Call(),
			jen.Return(id(err)),
		)
	}
	if q.tracked() {
		body = nil
		recovered := append([]code{unit("CountRecovery").Call(jen.Int().Call(id(q.inputEdges).Index(id(i))))}, p.notify(q, q.here(q.InputRecovered), id(i))...)
		body = append(body, jen.If(sel(x, "inputs", "Received").Call(jen.Int().Call(id(i)), unit("Now").Call())).Block(recovered...))
		if q.TimesInputs() {
			body = append(body, sel(x, "wait").Call())
		}
		p.doc("received notes that a message of an input was handled. If the input had timed out, it reports the recovery.")
		p.method(x, q.instance, "received", []code{param(i, id(q.inputType()))}, []code{jen.Params(param(err, jen.Error()))}, append(body, jen.Return(id(err)))...)
	}
	p.event(q)
}

// became writes the code that sets the state of an input in the tracker of this process.
func (p *part) became(q *processor, which code, state Ident) []code {
	if !q.tracksHere() {
		return nil
	}
	return []code{sel(p.v("x"), "in", "became").Call(which, supervise(state))}
}

// event writes the method that reports a closed input or a restarted sender.
//
//	func (x *plannerInstance) Event(e piper.Event) (err error) {
//		switch e.Kind {
//		case piper.EventClosed:
//			i := PlannerInput(slices.Index(plannerInputEdges[:], EdgeIndex(e.Index)))
//			first, all := x.inputs.Close(int(i))
//			x.in.became(i, supervise.Closed)
//			…
//		case piper.EventRestarted:
//			err = errors.Join(err, x.p.ProcessorRestarted(ProcessorIndex(e.Index)))
//		}
//		return err
//	}
func (p *part) event(q *processor) {
	x, e, i, err, first, all := p.v("x"), p.v("e"), p.v("i"), p.v("err"), p.v("first"), p.v("all")
	closed := []code{
		define(i, id(q.inputType()).Call(jen.Qual("slices", "Index").Call(id(q.inputEdges).Index(jen.Op(":")), id("EdgeIndex").Call(sel(e, "Index"))))),
	}
	notifyFirst, notifyAll := p.notify(q, q.closedHere(), id(i)), p.notify(q, q.here(q.AllInputsClosed))
	names := []Ident{"_", "_"}
	if notifyFirst != nil {
		names[0] = first
	}
	if notifyAll != nil {
		names[1] = all
	}
	if notifyFirst == nil && notifyAll == nil {
		closed = append(closed, sel(x, "inputs", "Close").Call(jen.Int().Call(id(i))))
	} else {
		closed = append(closed, jen.List(id(names[0]), id(names[1])).Op(":=").Add(sel(x, "inputs", "Close")).Call(jen.Int().Call(id(i))))
	}
	closed = append(closed, p.became(q, id(i), "Closed")...)
	if notifyFirst != nil {
		branch := jen.If(id(first)).Block(notifyFirst...)
		if state := q.stateHere(); state != nil {
			branch.Else().Block(p.notify(q, state, id(i))...)
		}
		closed = append(closed, branch)
	}
	if notifyAll != nil {
		condition := id(all)
		if !q.goesOn() {
			condition = row(condition, jen.Op("&&"), id(err), jen.Op("=="), jen.Nil())
		}
		closed = append(closed, jen.If(condition).Block(notifyAll...))
	}
	cases := []code{jen.Case(piper("EventClosed")).Block(closed...)}
	if q.ProcessorRestarted != nil {
		cases = append(cases, jen.Case(piper("EventRestarted")).Block(p.notify(q, q.here(q.ProcessorRestarted), id("ProcessorIndex").Call(sel(e, "Index")))...))
	}
	p.doc("Event reports an input that has closed, or a sender that was restarted.")
	p.method(x, q.instance, "Event", []code{param(e, piper("Event"))}, []code{jen.Params(param(err, jen.Error()))},
		jen.Switch(sel(e, "Kind")).Block(cases...),
		jen.Return(id(err)),
	)
}
