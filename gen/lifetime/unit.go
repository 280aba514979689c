package lifetime

import (
	"go/token"
	"go/types"
	"iter"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// unit is a function with its closures.
type unit struct {
	*checker
	function  *ssa.Function
	functions []*ssa.Function // the function and its closures
	objects   *objects
	values    map[ssa.Value]places
	tuples    map[ssa.Value]map[int]places // the parts of a tuple, and the results of a function of the unit
	sites     map[site]*object
	owners    map[*types.Var]string // by field: the type that has it
	resets    resets
	positions map[ssa.Instruction]int // in the order of instructions
	initials  map[*ssa.Alloc]initial
	links     map[link]*stores // filled by the last pass before the reports
	summary   *summary

	changed   bool
	linking   bool // values are final, and links are recorded
	reporting bool // values are final, and sinks are recorded
}

// site is an instruction, or one of its results, that allocates memory.
type site struct {
	value  ssa.Value
	result int
}

func newUnit(a *checker, f *ssa.Function) *unit {
	u := &unit{
		checker: a, function: f,
		objects:   &objects{outer: make(map[origin]*object), vars: make(map[string]*object), work: a.work},
		values:    make(map[ssa.Value]places),
		tuples:    make(map[ssa.Value]map[int]places),
		sites:     make(map[site]*object),
		links:     make(map[link]*stores),
		positions: make(map[ssa.Instruction]int),
		initials:  make(map[*ssa.Alloc]initial),
		owners:    make(map[*types.Var]string),
		summary:   new(summary),
	}
	var add func(*ssa.Function)
	add = func(f *ssa.Function) {
		u.functions = append(u.functions, f)
		for _, anon := range f.AnonFuncs {
			add(anon)
		}
	}
	add(f)
	return u
}

// run first finds the possible values, and then where parameters go.
func (u *unit) run() {
	for i := range u.instructions() {
		if len(u.positions) == instructionsMax {
			return
		}
		u.positions[i] = len(u.positions)
	}
	for i := range u.instructions() {
		if v, ok := i.(*ssa.Alloc); ok {
			u.findInitial(v)
		}
	}
	for i, p := range u.function.Params {
		u.parameter(p, i)
	}
	for i, v := range u.function.FreeVars { // free variables of a wrapper
		u.parameter(v, len(u.function.Params)+i)
	}
	for round := 0; round == 0 || u.changed && round < roundsMax; round++ {
		u.changed = false
		u.pass()
	}
	u.summary.joins = u.joins()
	u.findResets()
	u.linking = true
	u.pass()
	u.linking, u.reporting = false, true
	u.pass()
	for i, values := range u.tuples[u.function] {
		for len(u.summary.results) <= i {
			u.summary.results = append(u.summary.results, nil)
		}
		u.summary.results[i] = u.origins(values)
	}
	if u.work.exhausted() {
		u.summary = new(summary) // an incomplete summary could be wrong
	}
}

func (u *unit) parameter(v ssa.Value, index int) {
	if canHold(v.Type()) {
		o := u.objects.from(origin{param: index})
		o.param = v.Type()
		u.values[v] = places{place{object: o}: {}}
	}
}

// instructions are the instructions of the function and of its closures.
func (u *unit) instructions() iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		for _, f := range u.functions {
			for _, b := range f.Blocks {
				for _, i := range b.Instrs {
					if !yield(i) {
						return
					}
				}
			}
		}
	}
}

func (u *unit) pass() {
	for i := range u.instructions() {
		if !u.work.step() {
			return
		}
		u.instruction(i)
	}
}

// origins are the parameters and package variables, and the memory behind them, that are
// reachable from values.
func (u *unit) origins(values places) map[origin]bool {
	return u.originsFor(noReader, values)
}

// originsFor is like origins, but leaves out the values that other instructions store for the
// same reader.
func (u *unit) originsFor(reader int, values places) map[origin]bool {
	found := make(map[origin]bool)
	for o := range u.objects.reach(values, func(l link) bool { return u.links[l].only(reader) }) {
		if o.external {
			found[o.origin] = true
		}
	}
	return found
}

// value returns the possible values of v.
func (u *unit) value(v ssa.Value) places {
	switch v := v.(type) {
	case *ssa.Global:
		return places{place{object: u.objects.variable(v.Name())}: {}}
	case *ssa.Function:
		o := u.at(v, 0)
		o.closure = v
		return places{place{object: o}: {}}
	case *ssa.Const, *ssa.Builtin:
		return nil
	}
	return u.values[v]
}

// at is the memory that a site allocates.
func (u *unit) at(v ssa.Value, result int) *object {
	s := site{v, result}
	if u.sites[s] == nil {
		u.sites[s] = new(object)
	}
	return u.sites[s]
}

func (u *unit) set(v ssa.Value, values places) {
	if len(values) == 0 {
		return
	}
	u.values[v] = u.join(u.values[v], values)
}

// join adds more to at. It sets u.changed if at has changed.
func (u *unit) join(at, more places) places {
	u.changed = at.add(more) || u.changed
	return at
}

func (u *unit) setResult(v ssa.Value, i int, values places) {
	if len(values) == 0 {
		return
	}
	if u.tuples[v] == nil {
		u.tuples[v] = make(map[int]places)
	}
	u.tuples[v][i] = u.join(u.tuples[v][i], values)
}

// setPart sets part k of v if v is a tuple, else v itself.
func (u *unit) setPart(v ssa.Value, k int, values places) {
	if _, ok := v.Type().(*types.Tuple); ok {
		u.setResult(v, k, values)
	} else {
		u.set(v, values)
	}
}

// contents are the values of type t that may be stored at some places.
func (u *unit) contents(at places, t types.Type) places {
	if !canHold(t) {
		return nil
	}
	var found places
	for p := range at {
		if composite(t) {
			found.put(u.objects.loadWhole(p))
		} else {
			for v := range u.objects.load(p) {
				if v.mayBe(t) {
					found.put(v)
				}
			}
		}
	}
	return found
}

func (u *unit) instruction(i ssa.Instruction) {
	switch i := i.(type) {
	case *ssa.Alloc, *ssa.MakeSlice, *ssa.MakeMap:
		v := i.(ssa.Value)
		u.set(v, places{place{object: u.at(v, 0)}: {}})
	case *ssa.MakeChan:
		o := u.at(i, 0)
		o.channel = true
		u.set(i, places{place{object: o}: {}})
	case *ssa.MakeClosure:
		u.makeClosure(i)
	case *ssa.FieldAddr:
		if p, ok := i.X.Type().Underlying().(*types.Pointer); ok { // otherwise a type parameter
			u.set(i, u.fields(i.X, p.Elem(), i.Field))
		}
	case *ssa.Field:
		u.set(i, u.contents(u.fields(i.X, i.X.Type(), i.Field), i.Type()))
	case *ssa.Index:
		u.set(i, u.contents(u.value(i.X), i.Type()))
	case *ssa.Lookup:
		u.element(i, u.value(i.X))
	case *ssa.UnOp:
		if i.Op == token.MUL || i.Op == token.ARROW {
			u.element(i, u.value(i.X))
		}
		u.loadInitial(i)
	case *ssa.Phi:
		for _, e := range i.Edges {
			u.set(i, u.value(e))
		}
	case *ssa.IndexAddr, *ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface, *ssa.SliceToArrayPointer, *ssa.MultiConvert, *ssa.Range:
		x := i.Operands(nil)[0] // the other operands are indices
		u.set(i.(ssa.Value), u.value(*x))
	case *ssa.Convert:
		if canHold(i.Type()) && canHold(i.X.Type()) {
			u.set(i, u.value(i.X))
		}
	case *ssa.TypeAssert:
		u.typeAssert(i)
	case *ssa.Slice:
		u.slice(i)
	case *ssa.Next:
		if !i.IsString {
			u.next(i)
		}
	case *ssa.Extract:
		u.set(i, u.tuples[i.Tuple][i.Index])
	case *ssa.Return:
		u.returned(i.Parent(), i)
	default:
		u.effect(i)
	}
}

// next processes a step of a loop over a map.
func (u *unit) next(i *ssa.Next) {
	of := u.value(i.Iter)
	for r, at := range map[int]places{1: keysOf(of), 2: of} {
		if t := i.Type().(*types.Tuple).At(r).Type(); t != types.Typ[types.Invalid] {
			u.setResult(i, r, u.contents(at, t))
		}
	}
}

// keysOf are the places of the keys of maps.
func keysOf(maps places) places {
	var found places
	for p := range maps {
		if p.object.external || p.object.global != "" {
			found.put(p)
		} else {
			found.put(place{p.object, keys})
		}
	}
	return found
}

// element sets v to the values that may be stored at some places: behind an
// address, in a map, or in a channel.
func (u *unit) element(v ssa.Value, at places) {
	u.setPart(v, 0, u.contents(at, parts(v.Type())[0])) // the other part reports whether there is an element
}

func (u *unit) typeAssert(i *ssa.TypeAssert) {
	if !canHold(i.AssertedType) {
		return
	}
	var found places
	for p := range u.value(i.X) {
		if p.mayBe(i.AssertedType) {
			found.put(p)
		}
	}
	u.setPart(i, 0, found)
}

func (u *unit) makeClosure(i *ssa.MakeClosure) {
	f := i.Fn.(*ssa.Function)
	o := u.at(i, 0)
	o.closure = f
	for k, b := range i.Bindings {
		values := u.value(b)
		u.changed = place{object: o}.store(values, false) || u.changed
		if u.within(f) {
			u.set(f.FreeVars[k], values)
		}
	}
	u.set(i, places{place{object: o}: {}})
}

// within reports whether f is a closure of the unit.
func (u *unit) within(f *ssa.Function) bool {
	return f != u.function && slices.Contains(u.functions, f)
}

// slice sets i to a part of X. x[:0] counts as an empty slice, because ordinary code
// overwrites the elements of x before it reads them again.
func (u *unit) slice(i *ssa.Slice) {
	if !canHold(i.Type()) {
		return // a slice of a string
	}
	high, ok := i.High.(*ssa.Const)
	if !ok || high.Value == nil || high.Int64() != 0 {
		u.set(i, u.value(i.X))
		return
	}
	for p := range u.value(i.X) {
		if p.object.external {
			u.set(i, places{p: {}})
		}
	}
	u.set(i, places{place{object: u.at(i, 0)}: {}})
}

// fields are the places of a field of x.
func (u *unit) fields(x ssa.Value, t types.Type, index int) places {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	field := s.Field(index).Origin()
	if u.owners[field] == "" {
		if named, ok := types.Unalias(t).(*types.Named); ok {
			u.owners[field] = named.Obj().Name()
		}
	}
	var found places
	for p := range u.value(x) {
		found.put(place{p.object, field})
	}
	return found
}

// returned records the results of a function of the unit.
func (u *unit) returned(f *ssa.Function, r *ssa.Return) {
	for i, v := range r.Results {
		values := u.value(v)
		if !canHold(v.Type()) {
			continue
		}
		u.setResult(f, i, values)
		if f == u.function {
			u.escape(values, sink{kind: inResult, pos: r.Pos()}, r.Pos())
		}
	}
}
