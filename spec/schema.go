package spec

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec/finding"
)

const schemaURL = "https://raw.githubusercontent.com/topogen/topogen/main/schemas/topology.schema.json"

// compiledSchema compiles the embedded schema, and nothing else: every load is
// refused, so that no reference ever reaches a file or a network.
var compiledSchema = sync.OnceValue(func() *jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.LoadURL = func(location string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("the schema refers to %s, and nothing is loaded", location)
	}
	if err := compiler.AddResource(schemaURL, bytes.NewReader(schemas.Topology)); err != nil {
		panic(err) // the schema is embedded: a test compiles it
	}
	return compiler.MustCompile(schemaURL)
})

// located is a value of the file with its key; the key is nil in a list.
type located struct {
	field *Field
	value *Value
}

// schemaChecker walks through a file and the schema together, and makes findings
// of what differs.
type schemaChecker struct {
	found   *collector
	similar *Similar
	forms   forms
}

func checkSchema(root *Value, found *collector, similar *Similar) forms {
	c := &schemaChecker{found: found, similar: similar}
	c.check(compiledSchema(), located{value: root})
	return c.forms
}

// check knows the keywords that the schema has, in the ways in which it has them: a
// test lists them.
func (c *schemaChecker) check(s *jsonschema.Schema, at located) {
	s, v := resolveRef(s), at.value
	switch {
	case v.Kind != Map && c.found.exact[v.Pointer]: // the walk has said it
	case len(s.AnyOf) > 0:
		c.anyOf(s, at)
	case len(s.Types) > 0 && !v.isOneOf(s.Types):
		c.wrongType(s, at, s.Types)
	case len(s.Constant) > 0 && !(v.isOneOf([]string{"number"}) && v.number() == formatVersion):
		c.found.add(finding.Version, v.At, v.Pointer, fmt.Sprintf("%s must be %d, got %s", at.subject(), formatVersion, Describe(v)), fmt.Sprintf("write %d without quotes", formatVersion))
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, any(v.Text)):
		c.notAllowed(s, at)
	case v.Kind == Map:
		c.mapping(s, at)
	case v.Kind == List:
		c.list(s, at)
	case v.Kind == String && !fits(s, v.Text):
		c.forms = append(c.forms, form{at: at, rule: textRule(s, v.Text)})
	case s.Minimum != nil:
		c.number(s, at)
	}
}

// resolveRef follows references. Other keywords beside a reference are remarks.
func resolveRef(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil {
		s = s.Ref
	}
	return s
}

// anyOf checks the alternative for the kind of the value: no two are for one kind.
func (c *schemaChecker) anyOf(s *jsonschema.Schema, at located) {
	var wanted []string
	for _, alternative := range s.AnyOf {
		alternative = resolveRef(alternative)
		if at.value.isOneOf(alternative.Types) {
			c.check(alternative, at)
			return
		}
		wanted = append(wanted, alternative.Types...)
	}
	c.wrongType(s, at, wanted)
}

func (c *schemaChecker) mapping(s *jsonschema.Schema, at located) {
	if len(at.value.Fields) < s.MinProperties {
		c.empty(at)
		return
	}
	meant := c.unknownKeys(s, at)
	c.missingKeys(s, at, meant)
	fields := at.value.Fields
	if in(s, "item") { // the builder reports a key without an arrow, and a second key
		fields = fields[:min(len(fields), 1)]
		if len(fields) > 0 && !strings.Contains(fields[0].Key.Value, "->") {
			return
		}
	}
	for i := range fields {
		inner := located{field: &fields[i], value: fields[i].Value}
		name := inner.field.Key.Value
		if p := property(s, name); p != nil {
			c.check(p, inner)
		}
		if names := s.PropertyNames; names != nil && !fits(resolveRef(names), name) {
			c.forms = append(c.forms, form{at: inner, rule: textRule(resolveRef(names), name), name: true})
		}
	}
}

// property returns the schema for a key; nil: any value, or the key is unknown.
func property(s *jsonschema.Schema, name string) *jsonschema.Schema {
	if p := s.Properties[name]; p != nil {
		return p
	}
	for pattern, p := range s.PatternProperties { // of which no two match
		if pattern.MatchString(name) {
			return p
		}
	}
	p, _ := s.AdditionalProperties.(*jsonschema.Schema)
	return p
}

func (c *schemaChecker) list(s *jsonschema.Schema, at located) {
	if len(at.value.Items) < s.MinItems {
		c.empty(at)
	}
	for _, item := range at.value.Items {
		c.check(s.Items2020, located{value: item})
	}
}

// fits reports whether a text has the length and the form that the schema wants.
func fits(s *jsonschema.Schema, text string) bool {
	length := utf8.RuneCountInString(text)
	return length >= s.MinLength && (s.MaxLength < 0 || length <= s.MaxLength) &&
		(s.Pattern == nil || s.Pattern.MatchString(text))
}

// textRule says what a text must be that does not fit.
func textRule(s *jsonschema.Schema, text string) string {
	if s.Pattern != nil && !s.Pattern.MatchString(text) {
		return "must match " + s.Pattern.String()
	}
	if s.MaxLength < 0 {
		return fmt.Sprintf("must have at least %d characters", s.MinLength)
	}
	return fmt.Sprintf("must have %d to %d characters", max(s.MinLength, 0), s.MaxLength)
}

func (c *schemaChecker) number(s *jsonschema.Schema, at located) {
	low, _ := s.Minimum.Float64()
	high, _ := s.Maximum.Float64()
	switch n := at.value.number(); {
	case low <= n && n <= high:
	case low == high:
		c.forms = append(c.forms, form{at: at, rule: fmt.Sprintf("must be %.0f", low)}) // the builder knows that a duration is valid too
	default:
		c.found.add(finding.OutOfRange, at.value.At, at.value.Pointer,
			fmt.Sprintf("%s must be from %.0f to %.0f, got %s", at.subject(), low, high, clip(at.value.Text)), "")
	}
}

// isOneOf reports whether a value is of one of the types of JSON Schema.
func (v *Value) isOneOf(types []string) bool {
	return slices.ContainsFunc(types, func(name string) bool {
		switch name {
		case "boolean":
			return v.Kind == Bool
		case "integer":
			return v.Kind == Int || v.Kind == Float && v.number() == math.Trunc(v.number())
		case "number":
			return v.Kind == Int || v.Kind == Float
		case "string":
			return v.Kind == String
		case "array":
			return v.Kind == List
		}
		return v.Kind == Map
	})
}

// in reports whether a schema is a definition, or one of its alternatives.
func in(s *jsonschema.Schema, definition string) bool {
	_, name, _ := strings.Cut(s.Location, "#/$defs/")
	rest, ok := strings.CutPrefix(name, definition)
	number, alternative := strings.CutPrefix(rest, "/anyOf/")
	return ok && (rest == "" || alternative && !strings.Contains(number, "/"))
}

// forms are texts that do not have the form that the schema wants. The meaning check
// says the same more precisely; what it does not say is reported afterwards.
type forms []form

type form struct {
	at   located
	rule string // "must match ^[a-z]+$"
	name bool   // the key is wrong, for which its entry may have a finding
}

func (f forms) report(found *collector) {
	for _, form := range f {
		v := form.at.value
		if found.broken[v.Pointer] || form.name && found.exact[v.Pointer[:strings.LastIndexByte(v.Pointer, '/')]] {
			continue
		}
		message, at := form.at.subject()+" "+form.rule+", got "+Describe(v), form.at.shown()
		if form.name {
			message, at = "the name "+form.at.subject()+" "+form.rule, form.at.key()
		}
		found.add(finding.Form, at, v.Pointer, message, "")
	}
}
