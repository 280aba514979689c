package plan

import "reflect"

// Mentions calls visit for each Go name in the plan that the generated files use: types,
// constructors and variables. path is the package of the name, "" for the generated package.
func (p *Plan) Mentions(visit func(path, name string)) {
	w := mentions(visit)
	w.walk(reflect.ValueOf(p.Aliases))
	for i := range p.Processors {
		q := &p.Processors[i]
		if !q.External {
			w.walk(reflect.ValueOf(q.Type))
		}
		w.walk(reflect.ValueOf(q.Calls))
		if m := q.Machine; m != nil {
			w.walk(reflect.ValueOf(m.Answers))
			for _, name := range m.Errors {
				visit(m.UpdateType.Import, name)
			}
		}
	}
	for i := range p.Edges {
		w.walk(reflect.ValueOf(p.Edges[i].Type))
		w.walk(reflect.ValueOf(p.Edges[i].ReplyType))
	}
}

// mentions is the function that is called for each name.
type mentions func(path, name string)

// walk visits the names in a value, in order of declaration.
func (w mentions) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	case reflect.Struct:
		switch at := v.Interface().(type) {
		case TypeRef:
			at.Walk(func(t *TypeRef) {
				if t.Kind == Named && t.Name != "" {
					w(t.Import, t.Name)
				}
			})
			return
		case Alias:
			w("", at.Name)
		case Constructor:
			w(at.Import, at.Func)
		}
		for i := range v.NumField() {
			w.walk(v.Field(i))
		}
	}
}
