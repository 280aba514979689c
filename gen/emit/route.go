package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// routeOf returns how the edge chooses among instances. With one instance, only an id needs
// a check. In one process, which has no nodes, the route to a node is local.
func (e *edge) routeOf() plan.RouteKind {
	switch {
	case e.to.Instances == 1 && e.Route != plan.ID && !e.everywhere:
		return plan.Single
	case e.Route == plan.ToNode:
		return plan.Local
	}
	return e.Route
}

// byKey reports whether a field or method of the message chooses the instance.
func (e *edge) byKey() bool { return e.routeOf() == plan.Key || e.routeOf() == plan.ID }

// spread reports whether the edge leads to several instances at once.
func (e *edge) spread() bool {
	return e.routeOf() == plan.Broadcast || e.routeOf() == plan.Range && e.Count > 1
}

// instances is the number of the receiver's instances. It is a constant expression, because
// the field that holds the links is an array or a pointer to an array.
func (p *part) instances(e *edge) code {
	if !e.link.many() || e.to.others {
		return jen.Lit(e.to.Instances)
	}
	return jen.Len(sel(p.v("s"), e.link.field))
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

// choose returns the expression for the instance of an edge with key, id, local or a
// range of one, and the statements that must come before it, if any. If there are
// statements, or if named is set, the expression is the variable i.
func (p *part) choose(e *edge, message code, i Ident, named bool) (before []code, instance code) {
	switch e.routeOf() {
	case plan.Single:
		return nil, jen.Lit(0)
	case plan.Local:
		return nil, sel(p.v("s"), "out", "Index").Call().Op("%").Add(p.instances(e))
	case plan.Range:
		return nil, jen.Lit(e.Offset)
	}
	return e.byAccess(message, i, named, p.instances(e))
}

// byAccess is choose for a key or an id among n instances.
func (e *edge) byAccess(message code, i Ident, named bool, n code) (before []code, instance code) {
	if len(e.Nils) > 0 {
		var tests []code
		for _, steps := range e.Nils {
			tests = append(tests, jen.Add(e.access(message, steps)).Op("!=").Nil())
		}
		zero := jen.Qual(routePath, e.hashName()).Call(e.zeroKey(), n)
		return []code{
			remark(id(i).Op(":=").Add(zero), "if a pointer in %s is nil", e.accessText()),
			jen.If(joinedBy("&&", tests)).Block(set(id(i), e.hash(message, n))),
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
