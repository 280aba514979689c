package bind

import (
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/topogen/topogen/spec"
)

// configTypes declares the types for the values under one with:.
type configTypes struct {
	binder *binder
	list   []Struct
	misfit bool // the values have a finding
}

// takenNames are the names at package level that new types cannot use.
func (b *binder) takenNames() taken {
	if b.taken != nil {
		return b.taken
	}
	b.taken = make(taken)
	for name := range b.declared {
		b.taken.take(name)
	}
	for _, n := range b.plan.Names() {
		b.taken.take(n.Ident)
	}
	for i := range b.plan.Processors {
		b.taken.take(b.plan.Processors[i].Type.Name)
	}
	for i := range b.plan.Edges {
		b.taken.take(b.plan.Edges[i].Type.Name)
	}
	return b.taken
}

// taken maps names in lower case to the last number that was tried as a suffix.
type taken map[string]int

func (t taken) take(name string) { t[strings.ToLower(name)] = 1 }

// free takes name, or name with the smallest number that makes it unused, and returns it.
func (t taken) free(name string) string {
	base, result := strings.ToLower(name), name
	for t[strings.ToLower(result)] > 0 {
		t[base]++
		result = name + strconv.Itoa(t[base])
	}
	t.take(result)
	return result
}

// declare adds a struct that takes each of the mappings, and returns its name.
func (c *configTypes) declare(name string, mappings []*spec.Value) string {
	name = c.binder.takenNames().free(name)
	at := len(c.list)
	c.list = append(c.list, Struct{}) // reserves a place before the nested structs
	var keys []string
	values := make(map[string][]*spec.Value)
	for _, v := range mappings {
		for _, f := range v.Fields {
			key := f.Key.Value
			if _, ok := values[key]; !ok {
				keys = append(keys, key)
				values[key] = nil
			}
			if key == "" || strings.Contains(key, ",") {
				c.misfit = true
				c.binder.misplaced(&spec.Value{At: f.Key.At, Pointer: f.Key.Pointer}, "choose a key without a comma, of one letter or more", "a key must be usable as a yaml tag, got %q", key)
			}
			if f.Value.Kind != spec.Null { // null does not set the field
				values[key] = append(values[key], f.Value)
			}
		}
	}
	s := Struct{Name: name}
	fields := make(taken)
	for _, key := range keys {
		if strings.HasPrefix(key, "x-") {
			continue // the key is ignored everywhere
		}
		plain := fieldName(key)
		field := fields.free(plain)
		line := field + " " + c.typeOf(name+field, values[key])
		if strings.Contains(line, "time.Duration") {
			s.Imports = []string{"time"}
		}
		if field != plain || !strings.EqualFold(field, key) {
			line += " " + yamlTag(key)
		}
		s.Fields = append(s.Fields, line)
	}
	c.list[at] = s
	return name
}

// fieldName derives an exported name from a key, which may be any text.
func fieldName(key string) string {
	var name strings.Builder
	begin := true
	for _, r := range key {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			begin = true
			continue
		case begin:
			r = unicode.ToUpper(r)
		}
		begin = false
		name.WriteRune(r)
	}
	if !token.IsExported(name.String()) {
		return "Key" + name.String()
	}
	return name.String()
}

// yamlTag is the tag of a field whose name does not match the key.
func yamlTag(key string) string {
	if key == "-" {
		key = "-," // "-" without a comma would mean that the field has no key
	}
	tag := "yaml:" + strconv.Quote(key)
	if strconv.CanBackquote(tag) {
		return "`" + tag + "`"
	}
	return strconv.Quote(tag)
}

// typeOf is a type that fits all of the values. name is the name for a struct.
func (c *configTypes) typeOf(name string, values []*spec.Value) string {
	if len(values) == 0 {
		return "string"
	}
	count := make(map[spec.Kind]int)
	for _, v := range values {
		count[v.Kind]++
	}
	all := func(kinds ...spec.Kind) bool {
		n := 0
		for _, k := range kinds {
			n += count[k]
		}
		return n == len(values)
	}
	every := func(ok func(text string) bool) bool {
		return !slices.ContainsFunc(values, func(v *spec.Value) bool { return !ok(v.Text) })
	}
	switch {
	case all(spec.Bool):
		return "bool"
	case all(spec.Int) && every(fitsInt):
		return "int"
	case all(spec.Int) && every(fitsUint):
		return "uint64"
	case all(spec.Float, spec.Int):
		return "float64"
	case all(spec.String) && every(isDurationText):
		return "time.Duration"
	case all(spec.String):
		return "string"
	case all(spec.Map, spec.Null) && count[spec.Map] > 0:
		return c.declare(name, values)
	case all(spec.List, spec.Null) && count[spec.List] > 0:
		var items []*spec.Value
		for _, v := range values {
			items = append(items, v.Items...)
		}
		return "[]" + c.typeOf(name, items)
	case count[spec.Null] > 0:
		return "*" + c.typeOf(name, slices.DeleteFunc(slices.Clone(values), func(v *spec.Value) bool { return v.Kind == spec.Null }))
	}
	c.report(values)
	return "string"
}

func fitsInt(text string) bool {
	_, err := strconv.ParseInt(text, 0, 64)
	return err == nil
}

func fitsUint(text string) bool {
	_, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 0, 64)
	return err == nil
}

// isDurationText reports whether text is a duration with a unit. "0" has no unit.
func isDurationText(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil && strings.TrimRight(text, "hms") != text
}

// report reports values that have no common type.
func (c *configTypes) report(values []*spec.Value) {
	c.misfit = true
	at := values[0]
	if i := slices.IndexFunc(values, func(v *spec.Value) bool { return v.Kind != spec.String }); i > 0 {
		at = values[i] // a text could be converted to the other type
	}
	other := values[slices.IndexFunc(values, func(v *spec.Value) bool { return v.Kind != at.Kind })]
	suggestion := ""
	if isScalar(at) && isScalar(other) {
		suggestion = "write " + strconv.Quote(at.Text)
	}
	c.binder.misplaced(at, suggestion, "these values must have one type, got %s and %s", spec.Describe(at), spec.Describe(other))
}

func isScalar(v *spec.Value) bool { return v.Kind != spec.List && v.Kind != spec.Map }
