package lifetime

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// effect processes an instruction that stores, sends or calls.
func (u *unit) effect(i ssa.Instruction) {
	switch i := i.(type) {
	case *ssa.Store:
		if !u.replaced(i) {
			u.store(u.value(i.Addr), i.Val, i.Pos())
		}
	case *ssa.MapUpdate:
		u.store(keysOf(u.value(i.Map)), i.Key, i.Pos())
		u.store(u.value(i.Map), i.Value, i.Pos())
	case *ssa.Send:
		u.send(i.Chan, i.X, i.Pos())
	case *ssa.Select:
		result := 2
		for _, s := range i.States {
			if s.Dir == types.SendOnly {
				u.send(s.Chan, s.Send, s.Pos)
				continue
			}
			u.setResult(i, result, u.contents(u.value(s.Chan), i.Type().(*types.Tuple).At(result).Type()))
			result++
		}
	case *ssa.Call:
		u.call(i, &i.Call, i)
	case *ssa.Defer:
		u.call(i, &i.Call, nil)
	case *ssa.Go:
		u.spawn(append(u.arguments(&i.Call), u.value(i.Call.Value)), i.Pos())
		u.call(i, &i.Call, nil)
	}
}

// store puts v at places. For each place that outlives the call, it records the store.
func (u *unit) store(at places, v ssa.Value, pos token.Pos) {
	if !canHold(v.Type()) {
		return
	}
	values, whole, s := u.value(v), composite(v.Type()), sink{pos: pos}
	if !u.reporting {
		u.assign(at, values, whole, s, pos)
		return
	}
	reader := u.readFrom(v)
	for p := range at {
		if p.object.reader() == reader {
			u.assign(places{p: {}}, u.unread(v), whole, s, pos)
		} else {
			u.assign(places{p: {}}, values, whole, s, pos)
		}
	}
}

// assign is like store, for the possible values of v. It fills in the fields of the sink that
// are not set yet.
func (u *unit) assign(at, values places, whole bool, s sink, pos token.Pos) {
	if len(values) == 0 {
		return
	}
	u.recordLinks(at, values, whole)
	for p := range at {
		if p.object.global != "" {
			u.escape(values, sink{kind: inGlobal, name: p.object.global, pos: s.pos, helper: s.helper}, pos)
			continue
		}
		u.changed = p.store(values, whole) || u.changed
		if p.object.external && u.reporting && u.resets[p] == nil {
			u.transfer(p, values, s, pos)
		}
	}
}

// transfer records a store into the memory behind a parameter.
func (u *unit) transfer(p place, values places, s sink, pos token.Pos) {
	if s.name == "" {
		field := p.field
		if field == nil {
			field = p.object.origin.field
		}
		s.kind = inMemory
		if field != nil {
			s.kind, s.name, s.owner = inField, field.Name(), u.owners[field]
		}
	}
	for from := range u.originsFor(p.object.reader(), values) {
		u.summary.addStore(transfer{from: from, to: p.object.origin, field: p.field, sink: s, pos: pos})
	}
}

// escape records that values reach a place that outlives every call.
func (u *unit) escape(values places, s sink, pos token.Pos) {
	u.escapeVia(values, s, pos, origin{}, false)
}

func (u *unit) escapeVia(values places, s sink, pos token.Pos, via origin, sent bool) {
	if !u.reporting {
		return
	}
	for from := range u.originsFor(everywhere, values) {
		u.summary.addEscape(escape{from: from, sink: s, pos: pos, via: via, sent: sent})
	}
}

// send puts v into a channel. A channel of the unit counts as memory, any other channel as a
// sink.
func (u *unit) send(channel, v ssa.Value, pos token.Pos) {
	if !canHold(v.Type()) {
		return
	}
	values := u.value(v)
	u.recordLinks(u.value(channel), values, composite(v.Type()))
	for p := range u.value(channel) {
		if p.object.external || p.object.global != "" {
			u.escape(values, sink{kind: inChannel, pos: pos}, pos)
		} else {
			u.changed = p.store(values, composite(v.Type())) || u.changed
		}
	}
}

// spawn records the values that are passed to another goroutine.
func (u *unit) spawn(values []places, pos token.Pos) {
	for _, v := range values {
		u.escape(v, sink{kind: inGoroutine, pos: pos, joined: u.summary.joins}, pos)
	}
}
