package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
)

// delivery writes the code that puts a message from a processor of the pool into its
// queues.
type delivery struct {
	*part
	sent    *send
	message code
}

// misses reports whether the method returns an error if a receiver does not exist. The other
// receivers get the message even then, as they do if the method has no error result.
func (s *send) misses() bool { return s.Error && slices.ContainsFunc(s.edges, (*edge).mayMiss) }

// declareMissed returns the declaration of the variable for the error about a receiver that
// does not exist.
func (p *part) declareMissed(sent *send) []code {
	if !sent.misses() {
		return nil
	}
	return []code{remark(jen.Var().Add(param(p.v("missed"), jen.Error())), "if a receiver does not exist")}
}

// result returns the error that a method returns after it has sent the message.
func (p *part) result(sent *send) code {
	if sent.misses() {
		return id(p.v("missed"))
	}
	return jen.Nil()
}

// statements returns the whole code. If the method returns an error, all checks that
// may refuse the message come first, so that it enters all queues or none.
func (d *delivery) statements() []code {
	var before, after []code
	for i, e := range d.sent.edges {
		b, a := d.edge(e, i == len(d.sent.edges)-1)
		if d.sent.Error {
			before, after = append(before, b...), append(after, a...)
		} else {
			after = append(append(after, b...), a...)
		}
	}
	return append(before, after...)
}

// edge writes the delivery along one edge.
func (d *delivery) edge(e *edge, last bool) (before, after []code) {
	if e.spread() {
		return d.spread(e, last)
	}
	i, l := d.v("i"), d.v("l")
	if e.aimed {
		i = d.v("to")
	}
	if len(d.sent.edges) > 1 {
		i, l = e.to.local+"Index", e.to.local+"Link"
	}
	s := d.v("s")
	get := d.linkAt(s, e.link)
	miss := e.mayMiss()
	var instance code
	if e.link.many() || miss {
		before, instance = d.choose(e, d.message, i, miss)
		if e.link.many() {
			get.Call(instance)
		}
	}
	message := e.aimedAt(id(i), d.copyFor(last))
	exists := jen.Add(instance).Op(">=").Lit(0)
	var puts []code
	switch {
	case e.fails() && miss:
		before = append(before, jen.Var().Add(param(l, pointer(e.link.sentBy()))),
			jen.If(exists.Clone()).Block(set(id(l), get), d.check(e, id(l))))
		puts = d.put(e, id(l), message)
	case e.fails():
		before = append(before, define(l, get), d.check(e, id(l)))
		puts = d.put(e, id(l), message)
	default:
		puts = d.putOver(e, l, get, message)
	}
	if miss {
		none := code(remark(sel(s, "out", "NoInstance").Call(index(e.constant)), "counts the message"))
		if d.sent.Error {
			none = set(id(d.v("missed")), sel(s, "out", "NoInstance").Call(index(e.constant)))
		}
		puts = []code{jen.If(exists).Block(puts...).Else().Block(none)}
	}
	return before, puts
}

// aimedAt is an element of e's queue with its address, if the elements have addresses.
func (e *edge) aimedAt(to, element code) code {
	if !e.aimed {
		return element
	}
	return border("AimedAt").Call(to, element)
}

// arrived is an element of e's queue on the node to which it was sent.
func (e *edge) arrived(element code) code { return e.aimedAt(border("Address").Values(), element) }

// copyFor is the message itself for the last receiver. For other receivers it is a
// clone if the message needs one.
func (d *delivery) copyFor(last bool) code {
	if d.sent.Clone && !last {
		return jen.Add(d.message).Dot("Clone").Call()
	}
	return d.message
}

// check returns ErrFull if the queue in l is full.
func (d *delivery) check(e *edge, l *jen.Statement) code {
	return jen.If(jen.Op("!").Add(dot(e.queueIn(l), "Head", "Room").Call())).Block(jen.Return(topo("ErrFull")))
}

// spread writes the delivery to several instances.
func (d *delivery) spread(e *edge, last bool) (before, after []code) {
	i, l, s := d.v("i"), d.v("l"), d.v("s")
	get := func(instance code) *jen.Statement { return sel(s, e.link.getter).Call(instance) }
	from, count := e.span()
	at := func(i code) code {
		if from == 0 {
			return i
		}
		return jen.Lit(from).Op("+").Add(i)
	}
	number := func(n int) code {
		if e.everywhere {
			return border("Everywhere").Call(e.outOf(s), jen.Lit(n))
		}
		return jen.Lit(n)
	}
	if e.fails() {
		before = append(before, jen.For(id(i).Op(":=").Range().Add(number(count))).Block(d.check(e, get(at(id(i))))))
	}
	put := func(instance, message code) []code { return d.putOver(e, l, get(instance), message) }
	loop := func(n int, message code) code {
		return jen.For(id(i).Op(":=").Range().Add(number(n))).Block(put(at(id(i)), message)...)
	}
	if e.everywhere { // how many instances receive it is not known here
		last = false
	}
	if !d.sent.Clone || !last {
		return before, []code{loop(count, d.copyFor(last))}
	}
	return before, append([]code{loop(count-1, d.copyFor(false))}, put(jen.Lit(from+count-1), d.message)...)
}

// span is the range of instances that the edge spreads to.
func (e *edge) span() (from, count int) {
	if e.Count > 0 {
		return e.Offset, e.Count
	}
	return 0, e.to.Instances
}

// pass writes the code by which the sender s sends message to an instance of e's receiver.
func (p *part) pass(s Ident, e *edge, instance, message code) []code {
	get := p.linkAt(s, e.link)
	if e.link.many() {
		get.Call(instance)
	}
	return append(p.makeLink(s, e.link), p.putOver(e, p.v("l"), get, message)...)
}

// putOver is put for the link that the expression get returns. The variable l holds the
// link if it is used more than once.
func (p *part) putOver(e *edge, l Ident, get *jen.Statement, element code) []code {
	if !e.link.Sequenced {
		return p.put(e, get, element)
	}
	return append([]code{define(l, get)}, p.put(e, id(l), element)...)
}

// put writes the code that puts an element into the queue of e. The statements refused run if
// the queue is full and refuses the element. The expression l is evaluated once, unless
// messages are numbered or refused is given: then l must be a variable.
func (p *part) put(e *edge, l *jen.Statement, element code, refused ...code) []code {
	number := code(jen.Lit(0))
	if e.link.Sequenced {
		number = l.Clone().Dot("link").Dot("Number").Call()
	}
	if e.latest() {
		return []code{e.queueIn(l).Dot("Put").Call(element, number)}
	}
	if e.offers() && !e.link.Sequenced && refused == nil {
		return []code{queue("Offer").Call(e.queueRef(l), element)}
	}
	if e.link.Sequenced {
		element = e.numbered(number, element)
	}
	put := queue("Put").Call(e.queueRef(l), element)
	if e.offers() { // a refused element gets no number
		head := func(method Ident) *jen.Statement { return dot(e.queueIn(l), "Head", method).Call() }
		put = jen.If(head("Room")).Block(put).Else().Block(append([]code{head("Refuse")}, refused...)...)
	}
	return []code{put}
}

// numbered is the element with its number, for a link of several queues. The element comes first:
// it may be a copy that Clone makes, and a number without an element would hold up the link if Clone
// panics.
func (e *edge) numbered(number, element code) code {
	return queue("Numbered").Types(e.elementType()).Values(jen.Id("M").Op(":").Add(element), jen.Id("N").Op(":").Add(number))
}
