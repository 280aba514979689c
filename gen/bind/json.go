package bind

import (
	"go/types"
	"reflect"
	"strings"
)

// jsonWalk looks for the first part of a type that package encoding/json does not give back
// as it was.
type jsonWalk struct {
	pkg     *types.Package
	seen    map[jsonVisit]bool // types that check has entered
	entered map[jsonVisit]bool // embedded structs around the current field
	path    []string
}

// jsonVisit is a type that the walk has entered. The methods of a pointer are called only if
// the value is addressable, which a value of a map is not.
type jsonVisit struct {
	t           types.Type
	addressable bool
}

// jsonProblem is a part of a type that JSON changes.
type jsonProblem struct {
	path       []string // fields that lead to it
	t          types.Type
	reason     string // "is a channel"
	suggestion string
}

const ownJSON = "give the type the methods MarshalJSON and UnmarshalJSON"

// text describes the problem.
func (p *jsonProblem) text(b *binder) string {
	if len(p.path) == 0 {
		return b.typeText(p.t) + " " + p.reason
	}
	return "field " + strings.Join(p.path, ".") + " " + p.reason
}

func (w *jsonWalk) problem(t types.Type, reason, suggestion string) *jsonProblem {
	return &jsonProblem{append([]string(nil), w.path...), t, reason, suggestion}
}

// check returns the first problem in a type, or nil.
func (w *jsonWalk) check(t types.Type, addressable bool) *jsonProblem {
	t = types.Unalias(t)
	visit := jsonVisit{t, addressable}
	if w.seen[visit] {
		return nil
	}
	w.seen[visit] = true
	switch own, problem := w.ownForm(t, addressable); {
	case problem != nil:
		return problem
	case own:
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Info()&types.IsComplex != 0 || u.Kind() == types.UnsafePointer {
			return w.problem(t, "has the type "+u.Name()+", which JSON does not have", "use other types")
		}
	case *types.Pointer:
		return w.check(u.Elem(), true)
	case *types.Slice:
		return w.check(u.Elem(), true)
	case *types.Array:
		return w.check(u.Elem(), addressable)
	case *types.Map:
		return w.checkMap(u)
	case *types.Struct:
		return w.checkFields(u, make(map[string]bool), addressable)
	case *types.Chan:
		return w.problem(t, "is a channel", "remove it from the message")
	case *types.Signature:
		return w.problem(t, "is a function", "remove it from the message")
	case *types.Interface:
		return w.problem(t, "is an interface, and JSON does not keep the type in it", "use a concrete type, or "+ownJSON)
	}
	return nil
}

// ownForm reports whether a type decides itself what JSON keeps. It returns a problem if the
// type has only one of two methods.
func (w *jsonWalk) ownForm(t types.Type, addressable bool) (own bool, problem *jsonProblem) {
	if _, ok := t.(*types.Pointer); ok {
		return false, nil
	}
	for _, pair := range [][2]string{{"MarshalJSON", "UnmarshalJSON"}, {"MarshalText", "UnmarshalText"}} {
		encodes, decodes := w.hasMethod(t, pair[0], addressable), w.hasMethod(t, pair[1], true)
		switch {
		case encodes && decodes:
			return true, w.promoted(t, pair[0])
		case encodes:
			return false, w.problem(t, "has "+pair[0]+" without "+pair[1], "add the method "+pair[1])
		case decodes && w.hasMethod(t, pair[0], true):
			return false, w.problem(t, "is not addressable there, and its method "+pair[0]+" has a pointer receiver", "write "+pair[0]+" with a value receiver")
		case decodes:
			return false, w.problem(t, "has "+pair[1]+" without "+pair[0], "add the method "+pair[0])
		}
	}
	return false, nil
}

// promoted returns a problem if a method that decides what JSON keeps belongs to an embedded
// field, and the struct has other fields.
func (w *jsonWalk) promoted(t types.Type, name string) *jsonProblem {
	u, ok := t.Underlying().(*types.Struct)
	if !ok || u.NumFields() < 2 {
		return nil
	}
	_, index, _ := types.LookupFieldOrMethod(t, true, w.pkg, name)
	if len(index) < 2 {
		return nil
	}
	return w.problem(t, "has the method "+name+" of its embedded "+u.Field(index[0]).Name()+", which omits the other fields", "give the embedded field a name")
}

// jsonMethods are the signatures of the methods that package encoding/json calls.
var jsonMethods = map[string]string{
	"MarshalJSON":   "func() ([]byte, error)",
	"MarshalText":   "func() ([]byte, error)",
	"UnmarshalJSON": "func([]byte) error",
	"UnmarshalText": "func([]byte) error",
}

// hasMethod reports whether a value of type t has the method.
func (w *jsonWalk) hasMethod(t types.Type, name string, addressable bool) bool {
	object, _, _ := types.LookupFieldOrMethod(t, addressable, w.pkg, name)
	f, ok := object.(*types.Func)
	if !ok {
		return false
	}
	sig := f.Signature()
	var params []*types.Var
	for v := range sig.Params().Variables() {
		params = append(params, types.NewParam(v.Pos(), nil, "", v.Type()))
	}
	plain := types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), sig.Results(), false)
	return types.TypeString(withoutNames(plain), nil) == jsonMethods[name]
}

// withoutNames is a signature whose results have no names.
func withoutNames(sig *types.Signature) *types.Signature {
	var results []*types.Var
	for v := range sig.Results().Variables() {
		results = append(results, types.NewParam(v.Pos(), nil, "", v.Type()))
	}
	return types.NewSignatureType(nil, nil, nil, sig.Params(), types.NewTuple(results...), false)
}

func (w *jsonWalk) checkMap(u *types.Map) *jsonProblem {
	if own, problem := w.ownForm(types.Unalias(u.Key()), false); problem != nil {
		return problem
	} else if b, ok := u.Key().Underlying().(*types.Basic); !own && (!ok || b.Info()&(types.IsString|types.IsInteger) == 0) {
		return w.problem(u, "is a map whose keys are neither strings nor integers", "use other keys")
	}
	return w.check(u.Elem(), false)
}

// checkFields checks the fields of a struct. JSON omits unexported fields, and those of several
// fields with one name. names has the names of the JSON object to which the fields belong.
func (w *jsonWalk) checkFields(u *types.Struct, names map[string]bool, addressable bool) *jsonProblem {
	for i := range u.NumFields() {
		f := u.Field(i)
		w.path = append(w.path, f.Name())
		problem := w.checkField(f, reflect.StructTag(u.Tag(i)).Get("json"), names, addressable)
		w.path = w.path[:len(w.path)-1]
		if problem != nil {
			return problem
		}
	}
	return nil
}

func (w *jsonWalk) checkField(f *types.Var, tag string, names map[string]bool, addressable bool) *jsonProblem {
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return w.problem(f.Type(), `is omitted by its tag json:"-"`, "remove the field or the tag")
	case f.Embedded() && name == "" && isStruct(f.Type()):
		return w.embedded(f, names, addressable)
	case !f.Exported() && f.Name() == "_":
		return nil
	case !f.Exported():
		return w.problem(f.Type(), "is not exported, and JSON omits it", "export it, or "+ownJSON)
	}
	if name == "" {
		name = f.Name()
	}
	fold := strings.ToLower(name) // package encoding/json ignores the case of names when it decodes
	if names[fold] {
		return w.problem(f.Type(), "has the same name in JSON as another field", "give it another name in its tag")
	}
	names[fold] = true
	return w.check(f.Type(), addressable)
}

// embedded checks an embedded struct. Its fields are in the JSON object of the outer struct.
func (w *jsonWalk) embedded(f *types.Var, names map[string]bool, addressable bool) *jsonProblem {
	t := types.Unalias(f.Type())
	if p, ok := t.(*types.Pointer); ok {
		if !f.Exported() {
			return w.problem(t, "is an embedded pointer to an unexported type, which JSON cannot set", "embed the value")
		}
		t, addressable = types.Unalias(p.Elem()), true
	}
	visit := jsonVisit{t, addressable}
	if w.entered[visit] {
		return w.problem(t, "is a type that embeds itself, and JSON omits the embedded value", "give the field a name")
	}
	w.entered[visit] = true
	defer delete(w.entered, visit)
	if own, problem := w.ownForm(t, addressable); own || problem != nil {
		return problem
	}
	return w.checkFields(t.Underlying().(*types.Struct), names, addressable)
}

// isStruct reports whether t is a struct or a pointer to one.
func isStruct(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	_, ok := t.Underlying().(*types.Struct)
	return ok
}
