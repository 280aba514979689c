package lifetime

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// origin is a parameter of a unit, or memory that is reached through it.
type origin struct {
	param int        // index; the receiver is first, captured values of a wrapper are last
	inner bool       // memory that is reached through the parameter; else the parameter itself
	field *types.Var // field through which it was reached; nil: an element

	copied bool // a copy of the struct or array in that memory, which is not a pointer to that memory
}

// source is the memory from which an origin is copied.
func (o origin) source() origin {
	o.copied = false
	return o
}

// object is memory, or a parameter and the memory behind it.
type object struct {
	origin   origin        // for parameters and memory behind them
	external bool          // origin is set
	global   string        // the package variable that the object is, or is reached through; "": none
	param    types.Type    // type, for a parameter itself; else nil
	closure  *ssa.Function // the function, if it is one
	channel  bool          // a channel that the unit itself has made
	fields   map[*types.Var]places
	parts    places // structs and arrays that were stored as a whole
}

// place is an object, or a field of it. A field represents its address and, if it is a
// composite, also its value.
type place struct {
	object *object
	field  *types.Var // nil: the object, or an element of it
}

// keys represents the keys of a map as a field, so that keys and values are separate.
var keys = types.NewVar(token.NoPos, nil, "keys", types.Typ[types.Invalid])

// places are the possible values of a variable.
type places map[place]struct{}

// add adds more and reports whether that changed anything.
func (p *places) add(more places) bool {
	changed := false
	for m := range more {
		changed = p.put(m) || changed
	}
	return changed
}

func (p *places) put(m place) bool {
	if _, ok := (*p)[m]; ok || len(*p) >= placesMax {
		return false
	}
	if *p == nil {
		*p = make(places)
	}
	(*p)[m] = struct{}{}
	return true
}

// placesMax bounds the number of possible values. Beyond it, code is too complex to analyze,
// and the work would grow with the square.
const placesMax = 200

// objects are the objects of a unit.
type objects struct {
	outer map[origin]*object
	vars  map[string]*object
	work  *work
}

// work counts steps of about 100 ns each. In complex code each value may be any other value. The
// analysis then gives up on the handler when the count reaches the limit.
type work struct {
	done  int
	limit int // limit for the current handler
}

const (
	handlerWorkMax = 1 << 20 // steps: a tenth of a second; most handlers take a thousand steps
	workMax        = 1 << 24 // steps, for all handlers of a package: some seconds
)

// step counts a step and reports whether the limit allows it.
func (w *work) step() bool {
	w.done++
	return w.done <= w.limit
}

func (w *work) exhausted() bool { return w.done > w.limit }

// next sets the limit for another handler.
func (w *work) next() { w.limit = min(w.done+handlerWorkMax, workMax) }

// from returns the object for an origin.
func (o *objects) from(at origin) *object {
	if o.outer[at] == nil {
		o.outer[at] = &object{origin: at, external: true}
	}
	return o.outer[at]
}

func (o *objects) variable(name string) *object {
	if o.vars[name] == nil {
		o.vars[name] = &object{global: name}
	}
	return o.vars[name]
}

// load finds the values that may be stored at a place.
func (o *objects) load(p place) places {
	var found places
	o.collect(p, &found, make(map[place]bool))
	return found
}

func (o *objects) collect(p place, found *places, seen map[place]bool) {
	if seen[p] || !o.work.step() {
		return
	}
	seen[p] = true
	obj := p.object
	switch {
	case obj.global != "":
		found.put(place{object: obj})
		return
	case obj.origin.copied:
		o.collect(place{o.from(obj.origin.source()), p.field}, found, seen)
	case obj.external:
		found.put(place{object: o.inside(p)})
	}
	found.add(obj.fields[p.field])
	for part := range obj.parts {
		if p.field == nil {
			o.collect(part, found, seen)
		} else {
			o.collect(place{part.object, p.field}, found, seen)
		}
	}
}

// inside returns the object that is reached through a field of a parameter's memory. Only the
// last field on the path distinguishes objects, which bounds their number.
func (o *objects) inside(p place) *object {
	field := p.field
	if field == nil {
		field = p.object.origin.field
	}
	return o.from(origin{param: p.object.origin.param, inner: true, field: field})
}

// loadWhole is the struct or array at a place. Behind an inner pointer, copied distinguishes it from
// the pointer. Elsewhere the two have different origins.
func (o *objects) loadWhole(p place) place {
	if !p.object.external {
		return p
	}
	object := o.inside(p)
	if p.field == nil && p.object.origin.inner {
		at := object.origin
		at.copied = true
		object = o.from(at)
	}
	return place{object: object}
}

// mayBe reports whether a place may be a value of type t. A parameter itself can only have
// its own type, unless it is in an interface.
func (p place) mayBe(t types.Type) bool {
	own := p.object.param
	if own == nil || p.field != nil || types.IsInterface(own) || types.IsInterface(t) {
		return true
	}
	return types.Identical(own.Underlying(), t.Underlying())
}

// store puts values at a place that is local to the unit.
func (p place) store(values places, whole bool) bool {
	obj := p.object
	if whole {
		changed := false
		for v := range values {
			if v.object != obj {
				changed = obj.parts.put(v) || changed
			}
		}
		return changed
	}
	if obj.fields == nil {
		obj.fields = make(map[*types.Var]places)
	}
	at := obj.fields[p.field]
	changed := at.add(values)
	obj.fields[p.field] = at
	return changed
}

// reach finds all objects that are reachable from values: the values themselves, and the
// contents of local objects, at any depth. It does not follow the links for which omit returns true.
func (o *objects) reach(values places, omit func(link) bool) map[*object]bool {
	seen := make(map[*object]bool)
	var visit func(v place)
	visit = func(v place) {
		if seen[v.object] || !o.work.step() {
			return
		}
		seen[v.object] = true
		if v.object.external || v.object.global != "" {
			return
		}
		for field, inner := range v.object.fields {
			for w := range inner {
				if omit == nil || !omit(link{place{v.object, field}, w}) {
					visit(w)
				}
			}
		}
		for w := range v.object.parts {
			if omit == nil || !omit(link{place{v.object, wholes}, w}) {
				visit(w)
			}
		}
	}
	for v := range values {
		visit(v)
	}
	return seen
}
