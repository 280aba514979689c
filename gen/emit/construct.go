package emit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"time"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
)

// makeInstance is the function that returns the parts of an instance, after it has made its value.
//
//	…
//		x := &t.camera[in.Index]
//		x.out = &CameraSender{out: new(piper.Out)}
//		x.construct = processors.Camera
//		if x.p = new(Camera); processors.Camera != nil {
//			x.p, err = processors.Camera(in)
//		}
//		return piper.Parts{Cell: x, Unit: &x.unit, Out: x.out.out, Missing: x.p == nil}, err
//	…
func (p *part) makeInstance(q *processor) code {
	x, in, value, err := p.v("x"), p.v("in"), p.v("value"), p.v("err")
	body := append([]code{define(x, ref(p.v("t"), q.field).Index(sel(in, "Index")))}, p.newSender(q)...)
	if p.plan.Cluster == nil {
		value = "_"
	} else {
		body = append(body, jen.If(jen.Op("!").Add(id(value))).Block(jen.Return(p.partsOf(q, q.instance), jen.Nil())))
	}
	return jen.Func().Params(param(in, topo("Instance")), param(value, jen.Bool())).Params(param("_", piper("Parts")), param(err, jen.Error())).Block(
		append(body, p.makeValue(q)...)...)
}

// makeValue writes the code that makes the value of instance x and returns the parts of the
// instance.
func (p *part) makeValue(q *processor) (body []code) {
	x, in, construct, how := p.v("x"), p.v("in"), p.v("construct"), code(sel(p.v("processors"), q.ident))
	if q.Isolated() {
		return []code{
			jen.If(jen.Add(how).Op("!=").Nil()).Block(jen.Return(piper("Parts").Values(), piper("Isolated").Call())),
			jen.Return(p.partsOf(q, q.instance), jen.Nil()),
		}
	}
	standard := q.New != nil || q.Constructor() != "" || q.Watch != nil && q.tracksHere() // Renew calls the field construct
	if standard {
		body = append(body, define(construct, how), jen.If(id(construct).Op("==").Nil()).Block(set(id(construct), p.standard(q))))
		how = id(construct)
	}
	if q.Watch != nil {
		body = append(body, set(sel(x, "construct"), how))
	}
	value, err := sel(x, "p"), id(p.v("err"))
	call := jen.List(value, err).Op("=").Add(how).Call(id(in))
	if standard {
		body = append(body, call)
	} else {
		body = append(body, jen.If(set(value, jen.New(typeCode(q.Type))), jen.Add(how).Op("!=").Nil()).Block(call))
	}
	if q.tracksHere() {
		body = append(body, set(sel(x, "in"), jen.New(id(q.trackerType()))),
			jen.If(jen.Add(err).Op("==").Nil().Op("&&").Add(value).Op("!=").Nil()).Block(sel(x, "p", "Inputs").Call(sel(x, "in"))))
	}
	return append(body, jen.Return(p.partsOf(q, q.instance, key("Missing", jen.Add(value).Op("==").Nil())), err))
}

// makeGuest is the function that makes what stands for an instance of another node.
func (p *part) makeGuest(q *processor) code {
	typ := q.guest
	var sender []code
	if typ == "" {
		typ = q.instance
		sender = p.newSender(q)
	}
	return jen.Func().Params().Add(piper("Parts")).Block(append(append([]code{define(p.v("x"), jen.New(id(typ)))}, sender...), jen.Return(p.partsOf(q, typ)))...)
}

// partsOf is the piper.Parts of x, whose type is typ, with the fields more.
func (p *part) partsOf(q *processor, typ Ident, more ...code) code {
	x := p.v("x")
	out := code(ref(x, "out"))
	if typ == q.instance {
		out = p.outOf(q, x)
	}
	return piper("Parts").Values(append([]code{key("Cell", id(x)), key("Unit", ref(x, "unit")), key("Out", out)}, more...)...)
}

// standard is the constructor that is used if Processors has none: it calls the
// function under new in the file, or returns a zero value.
func (p *part) standard(q *processor) code {
	c, in, made, err := q.New, p.v("in"), p.v("p"), p.v("err")
	instance := topo("Instance")
	if c != nil && c.Instance {
		instance = id(in).Add(instance)
	}
	function := func(body ...code) code {
		return jen.Func().Params(instance).Params(pointer(typeCode(q.Type)), jen.Error()).Block(body...)
	}
	if name := q.Constructor(); name != "" {
		var args []code
		if q.Machine.Kept() && q.InstancesType() != "" {
			instance, args = id(in).Add(instance), []code{sel(in, "Index")}
		}
		made := []code{id(mustIdent(name)).Call(args...)}
		if !q.Machine.Kept() {
			made = append(made, jen.Nil())
		}
		return function(jen.Return(made...))
	}
	if c == nil {
		return function(jen.Return(jen.New(typeCode(q.Type)), jen.Nil()))
	}
	call := qualified(c.Import, c.Func)
	if len(c.Args) > 0 {
		args := make([]code, len(c.Args))
		for i, a := range c.Args {
			args[i] = typeCode(a)
		}
		call.Types(args...)
	}
	var args []code
	if c.Instance {
		args = append(args, id(in))
	}
	if c.Config != nil {
		args = append(args, literal(c.Config))
	}
	call.Call(args...)
	switch {
	case c.Pointer && c.Error:
		return function(jen.Return(call))
	case c.Pointer:
		return function(jen.Return(call, jen.Nil()))
	case c.Error:
		return function(jen.List(id(made), id(err)).Op(":=").Add(call), jen.Return(jen.Op("&").Add(id(made)), id(err)))
	}
	return function(define(made, call), jen.Return(jen.Op("&").Add(id(made)), jen.Nil()))
}

// tracking wraps construct in a function that also passes the tracker of the inputs
// to the instance. The pool turns a panic of this function into an error that names
// the instance, so a panic of the method Inputs is reported in the same way.
func (p *part) tracking(q *processor, construct, tracker code) code {
	in, made, err := p.v("in"), p.v("p"), p.v("err")
	return jen.Func().Params(id(in).Add(topo("Instance"))).Params(pointer(typeCode(q.Type)), jen.Error()).Block(
		jen.List(id(made), id(err)).Op(":=").Add(construct).Call(id(in)),
		jen.If(id(err).Op("==").Nil().Op("&&").Add(id(made)).Op("!=").Nil()).Block(sel(made, "Inputs").Call(tracker)),
		jen.Return(id(made), id(err)),
	)
}

// literal turns a value from the file into Go.
func literal(l *plan.Literal) code {
	switch l.Kind {
	case plan.NilLit:
		return jen.Nil()
	case plan.PointerTo:
		item := &l.Items[0]
		if item.Kind == plan.Basic {
			return jen.New(typeCode(item.Type).Call(basic(item)))
		}
		return jen.Op("&").Add(literal(item))
	case plan.Basic:
		return basic(l)
	}
	var elements []code
	for i := range l.Fields {
		field := &l.Fields[i]
		var name code
		if l.Kind == plan.MapLit {
			name = literal(field.Key)
		} else {
			name = id(mustIdent(field.Name))
		}
		elements = append(elements, jen.Add(name).Op(":").Add(literal(&field.Value)))
	}
	for i := range l.Items {
		elements = append(elements, literal(&l.Items[i]))
	}
	return typeCode(l.Type).Values(elements...)
}

// basic is a number, string or bool. The text is parsed and written again, so that
// only literals can enter the output.
func basic(l *plan.Literal) code {
	if l.Type.Import == "time" && l.Type.Name == "Duration" {
		if n, err := strconv.ParseInt(l.Text, 10, 64); err == nil {
			return duration(time.Duration(n))
		}
	}
	if l.Text == "true" || l.Text == "false" {
		return jen.Lit(l.Text == "true")
	}
	e, err := parser.ParseExpr(l.Text)
	sign := ""
	if minus, ok := e.(*ast.UnaryExpr); ok && err == nil && minus.Op == token.SUB {
		sign, e = "-", minus.X
	}
	b, ok := e.(*ast.BasicLit)
	switch {
	case err != nil || !ok:
		panic(badName(fmt.Sprintf("%q is not a literal", l.Text)))
	case b.Kind == token.STRING && sign == "":
		text, err := strconv.Unquote(b.Value)
		if err != nil {
			panic(badName(fmt.Sprintf("%q is not a string", l.Text)))
		}
		return jen.Lit(text)
	case b.Kind == token.INT || b.Kind == token.FLOAT:
		return jen.Op(sign + b.Value)
	}
	panic(badName(fmt.Sprintf("%q is not a literal", l.Text)))
}
