package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// routeOf returns how the edge chooses among instances. With one instance, only an id needs
// a check.
func (e *edge) routeOf() plan.RouteKind {
	if e.to.Instances == 1 && e.Route != plan.ID && !e.everywhere && !e.aimed {
		return plan.Single
	}
	return e.Route
}

// mayMiss reports whether the message may name an instance or a node that does not exist.
func (e *edge) mayMiss() bool { return e.Route == plan.ID || e.Route == plan.ToNode }

// aim is the call that finds the address of a receiver on the node with a name.
func (p *part) aim(e *edge, out, node code) *jen.Statement {
	n := jen.Lit(e.to.Instances)
	if e.from.External {
		return border("AimFrom").Call(out, node, n)
	}
	return border("Aim").Call(out, node, n)
}

// findAddress writes the code that sets the variable at to the address of the instance to
// which message goes.
//
//	to := border.Aim(&s.out, m.Node, 2)
func (p *part) findAddress(e *edge, message code, at Ident, out code) []code {
	if len(e.Nils) == 0 {
		return []code{define(at, p.aim(e, out, e.access(message, len(e.Access))))}
	}
	return []code{
		remark(id(at).Op(":=").Add(p.aim(e, out, jen.Lit(""))), "if a pointer in %s is nil", e.accessText()),
		jen.If(e.reachable(message)).Block(set(id(at), p.aim(e, out, e.access(message, len(e.Access))))),
	}
}

// reachable is the condition that no pointer on the path to the key is nil.
func (e *edge) reachable(message code) code {
	var tests []code
	for _, steps := range e.Nils {
		tests = append(tests, jen.Add(e.access(message, steps)).Op("!=").Nil())
	}
	return joinedBy("&&", tests)
}

// outOf is a pointer to the runtime's part of the sender s, through which e's messages enter.
func (e *edge) outOf(s Ident) code {
	switch {
	case e.from.External:
		return sel(s, "door")
	case e.from.exchangesSender():
		return sel(s, "out")
	}
	return ref(s, "out")
}

// byKey reports whether a field or method of the message chooses the instance.
func (e *edge) byKey() bool { return e.routeOf() == plan.Key || e.routeOf() == plan.ID }

// spread reports whether the edge leads to several instances at once.
func (e *edge) spread() bool {
	return e.routeOf() == plan.Broadcast || e.routeOf() == plan.Range && e.Count > 1
}

// hash is the call that maps the key or id of message to one of n instances.
func (e *edge) hash(message, n code) code {
	return jen.Qual(routePath, e.hashName()).Call(e.access(message, len(e.Access)), n)
}

// keys are the functions that map keys to instances, each with the key that is used if a pointer
// on the path to the key is nil.
var keys = [...]struct {
	hash string
	zero code
}{
	plan.KeyString: {"String", jen.Lit("")},
	plan.KeyBytes:  {"Bytes", jen.Index().Byte().Call(jen.Nil())},
	plan.KeyInt:    {"Int", jen.Lit(0)},
	plan.KeyUint:   {"Uint", jen.Uint().Call(jen.Lit(0))},
	plan.KeyBool:   {"Bool", jen.False()},
}

func (e *edge) hashName() string {
	if e.Route == plan.ID {
		return "ID"
	}
	return keys[e.KeyKind].hash
}

// access is the first n steps of the path to the key.
func (e *edge) access(message code, n int) code {
	c := jen.Add(message)
	for _, name := range e.Access[:n] {
		c.Dot(name) // checked when the model was made
	}
	if e.Method && n == len(e.Access) {
		c.Call()
	}
	return c
}

// zeroKey is the key that is used if a pointer on the path to the key is nil.
func (e *edge) zeroKey() code {
	if e.Route == plan.ID {
		return jen.Lit(0)
	}
	return keys[e.KeyKind].zero
}

// choose returns the expression for the instance of an edge with key, id, local, node or a
// range of one, and the statements that must come before it, if any. If there are
// statements, or if named is set, the expression is the variable i. For a node, i is the
// address.
func (p *part) choose(e *edge, message code, i Ident, named bool) (before []code, instance code) {
	switch e.routeOf() {
	case plan.Single:
		return nil, jen.Lit(0)
	case plan.Local:
		return nil, sel(p.v("s"), "out", "Index").Call().Op("%").Add(jen.Lit(e.to.Instances))
	case plan.Range:
		return nil, jen.Lit(e.Offset)
	case plan.ToNode:
		return p.findAddress(e, message, i, e.outOf(p.v("s"))), sel(i, "Slot").Call()
	}
	return e.byAccess(message, i, named, jen.Lit(e.to.Instances))
}

// byAccess is choose for a key or an id among n instances.
func (e *edge) byAccess(message code, i Ident, named bool, n code) (before []code, instance code) {
	if len(e.Nils) > 0 {
		zero := jen.Qual(routePath, e.hashName()).Call(e.zeroKey(), n)
		return []code{
			remark(id(i).Op(":=").Add(zero), "if a pointer in %s is nil", e.accessText()),
			jen.If(e.reachable(message)).Block(set(id(i), e.hash(message, n))),
		}, id(i)
	}
	if named {
		return []code{define(i, e.hash(message, n))}, id(i)
	}
	return nil, e.hash(message, n)
}

func (e *edge) accessText() string { return strings.Join(e.Access, ".") }

// destination names the receiver of a message, for comments.
func (e *edge) destination() string {
	to := e.to.Name
	switch e.routeOf() {
	case plan.Key:
		return "the instance of " + to + " that the hash of " + e.accessText() + " selects"
	case plan.ID:
		return "the instance of " + to + " whose index is " + e.accessText()
	case plan.Local:
		return "the local instance of " + to
	case plan.ToNode:
		return "the instance of " + to + " on the node " + e.accessText()
	case plan.Range:
		if e.Count > 1 {
			return fmt.Sprintf("instances %d to %d of %s", e.Offset, e.Offset+e.Count-1, to)
		}
		return fmt.Sprintf("instance %d of %s", e.Offset, to)
	case plan.Broadcast:
		if e.everywhere {
			to += " on all nodes"
		}
		return "all instances of " + to
	}
	return to
}
