package lifetime

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// body returns f, or its generic function if f is an instance of one. It is nil if the body is in another package or unknown.
func (u *unit) body(f *ssa.Function) *ssa.Function {
	if o := f.Origin(); o != nil {
		f = o
	}
	if len(f.Blocks) == 0 {
		return nil
	}
	return f
}

// arguments are the possible values of the callee's parameters, beginning with the receiver.
func (u *unit) arguments(call *ssa.CallCommon) []places {
	var list []places
	if call.IsInvoke() {
		list = append(list, u.value(call.Value))
	}
	for _, a := range call.Args {
		if canHold(a.Type()) {
			list = append(list, u.value(a))
		} else {
			list = append(list, nil)
		}
	}
	return list
}

// call follows a call. result is nil for go and defer statements.
func (u *unit) call(i ssa.CallInstruction, call *ssa.CallCommon, result ssa.Value) {
	if b, ok := call.Value.(*ssa.Builtin); ok {
		u.builtin(b.Name(), call, result)
		return
	}
	if result != nil {
		u.fresh(call, result)
	}
	args := u.arguments(call)
	if call.IsInvoke() {
		u.sentByInterface(call, args, i.Pos())
		u.derived(call, result)
		return
	}
	f := call.StaticCallee()
	if f == nil {
		u.dynamic(call, args, result, i.Pos())
		return
	}
	if closure, ok := call.Value.(*ssa.MakeClosure); ok && !u.within(f) { // a wrapper of a method value
		for _, b := range closure.Bindings {
			args = append(args, u.value(b))
		}
	}
	u.static(f, call, args, result, i.Pos())
}

func (u *unit) static(f *ssa.Function, call *ssa.CallCommon, args []places, result ssa.Value, pos token.Pos) {
	body := u.body(f)
	switch {
	case body != nil && u.within(body):
		u.closure(body, args, result)
	case body != nil:
		u.apply(u.summaryOf(body), body.Name(), args, result, pos)
	case u.sender(f):
		for k, a := range args {
			if k > 0 && !isContext(call.Args[k].Type()) {
				u.escape(a, sink{kind: inMessage, pos: pos}, pos)
			}
		}
	default:
		u.foreign(f, call, args, result, pos)
	}
}

// closure binds the parameters of a closure of the unit.
func (u *unit) closure(f *ssa.Function, args []places, result ssa.Value) {
	for k, p := range f.Params {
		if k < len(args) {
			u.set(p, args[k])
		}
	}
	if result == nil {
		return
	}
	for k, values := range u.tuples[f] {
		u.setPart(result, k, values)
	}
}

// dynamic follows a call of a function value, which may be a closure of the unit.
func (u *unit) dynamic(call *ssa.CallCommon, args []places, result ssa.Value, pos token.Pos) {
	for p := range u.value(call.Value) {
		f := p.object.closure
		if f == nil {
			continue
		}
		all := args
		if len(f.FreeVars) > 0 && !u.within(f) { // a wrapper, which binds one value
			all = append(append([]places(nil), args...), p.object.fields[nil])
		}
		u.static(f, call, all, result, pos)
	}
}

// fresh gives the results of a call new memory. A value that is stored in this memory goes
// where the results go.
func (u *unit) fresh(call *ssa.CallCommon, result ssa.Value) {
	for k, t := range parts(result.Type()) {
		if !canHold(t) {
			continue
		}
		o := u.at(result, k)
		if _, ok := t.Underlying().(*types.Chan); ok && !ticks(call) {
			o.channel = true
		}
		u.setPart(result, k, places{place{object: o}: {}})
	}
}

// parts are the types of a tuple, or the type itself.
func parts(t types.Type) []types.Type {
	tuple, ok := t.(*types.Tuple)
	if !ok {
		return []types.Type{t}
	}
	var list []types.Type
	for v := range tuple.Variables() {
		list = append(list, v.Type())
	}
	return list
}

// ticks reports whether a call returns the channel of a context or a timer. Receiving from it
// does not count as waiting for goroutines.
func ticks(call *ssa.CallCommon) bool {
	name := calledName(call)
	return name == "Done" || name == "After" || name == "Tick"
}

func (u *unit) builtin(name string, call *ssa.CallCommon, result ssa.Value) {
	switch name {
	case "append":
		if result == nil {
			return
		}
		u.set(result, u.value(call.Args[0]))
		o := u.at(result, 0)
		u.set(result, places{place{object: o}: {}})
		elem, ok := result.Type().Underlying().(*types.Slice)
		if !ok || !canHold(elem.Elem()) {
			return
		}
		for _, a := range call.Args {
			u.changed = place{object: o}.store(u.value(a), true) || u.changed
		}
		u.recordRead(o, call.Args[0])
		if len(call.Args) == 2 { // append writes into the first argument if its capacity suffices
			u.elements(call.Args[0], call.Args[1])
			u.recordLinks(places{place{object: o}: {}}, u.value(call.Args[1]), true) // the call of append is not reported
		}
	case "copy":
		to, ok := call.Args[0].Type().Underlying().(*types.Slice)
		if !ok || !canHold(to.Elem()) {
			return
		}
		u.elements(call.Args[0], call.Args[1])
		for p := range u.value(call.Args[0]) {
			if p.object.external || p.object.global != "" {
				values := u.contents(u.value(call.Args[1]), to.Elem())
				u.assign(places{p: {}}, values, composite(to.Elem()), sink{pos: call.Pos()}, call.Pos())
			}
		}
	}
}

// elements copies the elements of the slice from into the slice to, if the memory of to is local.
func (u *unit) elements(to, from ssa.Value) {
	u.recordLinks(u.value(to), u.value(from), true)
	for p := range u.value(to) {
		if !p.object.external && p.object.global == "" {
			u.changed = p.store(u.value(from), true) || u.changed
		}
	}
}

// foreign follows a call of a function of another package, or of a generated function.
func (u *unit) foreign(f *ssa.Function, call *ssa.CallCommon, args []places, result ssa.Value, pos token.Pos) {
	object, ok := f.Object().(*types.Func)
	if !ok {
		return
	}
	object = object.Origin()
	switch keepers[object.FullName()] {
	case starts:
		u.starts(call, args, result, pos)
	case holds:
		for k, a := range args[1:] {
			u.assign(args[0], a, composite(call.Args[k+1].Type()), sink{pos: pos}, pos)
		}
	}
	u.derived(call, result)
	if result != nil && object.Pkg() != nil && resultsHoldArguments(object.Pkg().Path()) && canHold(result.Type()) {
		for _, a := range args {
			u.setPart(result, 0, a)
		}
	}
}

// starts follows a call that runs its functions in another goroutine. If its result is used,
// such as the timer of time.AfterFunc, the caller can stop that goroutine.
func (u *unit) starts(call *ssa.CallCommon, args []places, result ssa.Value, pos token.Pos) {
	stops := result != nil && result.Referrers() != nil && len(*result.Referrers()) > 0
	for k, a := range args {
		if _, ok := call.Args[k].Type().Underlying().(*types.Signature); ok {
			u.escape(a, sink{kind: inGoroutine, pos: pos, joined: stops || u.summary.joins}, pos)
		}
	}
}

// derived treats a context that a call returns as the context in the arguments. It excludes
// context.WithoutCancel, whose result may outlive that context.
func (u *unit) derived(call *ssa.CallCommon, result ssa.Value) {
	if f := call.StaticCallee(); result == nil || f != nil && f.Name() == "WithoutCancel" {
		return
	}
	for _, a := range call.Args {
		if !isContext(a.Type()) {
			continue
		}
		for k, t := range parts(result.Type()) {
			if isContext(t) {
				u.setPart(result, k, u.value(a))
			}
		}
	}
}

// sentByInterface records values that a method of an interface sends. The interface may be a
// sender.
func (u *unit) sentByInterface(call *ssa.CallCommon, args []places, pos token.Pos) {
	if !u.reporting || !sends(call.Method.Name()) {
		return
	}
	for p := range args[0] {
		if !p.object.external || p.object.origin.inner {
			continue
		}
		for k, a := range args[1:] {
			if !isContext(call.Args[k].Type()) {
				u.escapeVia(a, sink{kind: inMessage, pos: pos}, pos, p.object.origin, true)
			}
		}
	}
}

// apply follows a call with the summary of the callee.
func (u *unit) apply(s *summary, name string, args []places, result ssa.Value, pos token.Pos) {
	if u.reporting {
		for _, e := range s.escapes {
			if e.sink.kind == inResult {
				continue // s.results includes this escape
			}
			u.applyEscape(e, name, args, pos)
		}
	}
	for _, t := range s.stores {
		if !u.work.step() {
			return
		}
		at := u.resolve(t.to, args)
		if t.field != nil {
			moved := make(places)
			for p := range at {
				moved.put(place{p.object, t.field})
			}
			at = moved
		}
		to := t.sink
		if to.helper == "" {
			to.helper = name
		}
		u.assign(at, u.resolve(t.from, args), false, to, pos)
	}
	if result == nil {
		return
	}
	for k, list := range s.results {
		for o := range list {
			u.setPart(result, k, u.resolve(o, args))
		}
	}
}

func (u *unit) applyEscape(e escape, name string, args []places, pos token.Pos) {
	to := e.sink
	if to.helper == "" {
		to.helper = name
	}
	to.joined = to.joined || u.summary.joins
	values := u.resolve(e.from, args)
	if !e.sent {
		u.escape(values, to, pos)
		return
	}
	for p := range u.resolve(e.via, args) {
		if p.object.external && !p.object.origin.inner {
			u.escapeVia(values, to, pos, p.object.origin, true)
		}
	}
}

// resolve returns the values in the caller for an origin in the callee.
func (u *unit) resolve(o origin, args []places) places {
	if o.param >= len(args) {
		return nil // bound by a wrapper whose bindings are unknown
	}
	if !o.inner {
		return args[o.param]
	}
	if o.copied {
		return u.copies(u.resolve(o.source(), args))
	}
	var found places
	for p := range args[o.param] {
		if o.field == nil {
			found.add(u.objects.load(p))
		}
	}
	for object := range u.objects.reach(args[o.param], nil) {
		found.add(u.objects.load(place{object, o.field}))
	}
	return found
}

// copies are copies of the structs and arrays at some places. After m.Next = m, a copy of the parameter m
// contains m. A store in the memory behind m does not count, because the copy may be made before it.
func (u *unit) copies(at places) places {
	var found places
	for p := range at {
		found.put(u.objects.loadWhole(p))
		if p.object.origin.inner {
			continue
		}
		for _, values := range p.object.fields {
			found.add(values)
		}
		found.add(p.object.parts)
	}
	return found
}
