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

// compiledSchema compiles the embedded schema. The compiler must not load anything else, so that
// no reference reads a file or the network.
var compiledSchema = sync.OnceValue(func() *jsonschema.Schema {
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.LoadURL = func(location string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("the schema must not refer to other documents, got %s", location)
	}
	if err := compiler.AddResource(schemaURL, bytes.NewReader(schemas.Topology)); err != nil {
		panic(err) // the schema is embedded, and a test compiles it
	}
	return compiler.MustCompile(schemaURL)
})

// located is a value of the file with its key. The key is nil for an item of a list.
type located struct {
	field *Field
	value *Value
}

// schemaChecker compares the values of a file with the schema and reports differences.
type schemaChecker struct {
	found   *collector
	similar *Similar
	forms   forms

	misspelled map[string]bool // see collector
}

func checkSchema(root *Value, found *collector, similar *Similar) forms {
	c := &schemaChecker{found: found, similar: similar, misspelled: map[string]bool{}}
	c.check(compiledSchema(), located{value: root})
	found.misspelled = c.misspelled // only now, because the schema's own findings do not follow from others
	return c.forms
}

// check checks a value against a schema. It supports only the keywords that the embedded schema
// uses; a test lists them.
func (c *schemaChecker) check(s *jsonschema.Schema, at located) {
	s, v := resolveRef(s), at.value
	switch {
	case v.Kind != Map && c.found.exact[v.Pointer]: // the walker has reported it
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

// resolveRef follows references. The other keywords of a schema with a reference are only
// descriptions, defaults and examples.
func resolveRef(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil {
		s = s.Ref
	}
	return s
}

// anyOf checks the alternative for the kind of the value. No two alternatives have the same
// kind.
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
	if in(s, "item") { // the builder reports a key without an arrow and a second key
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

// property returns the schema of a key. It is nil if the key is unknown or may have any value.
func property(s *jsonschema.Schema, name string) *jsonschema.Schema {
	if p := s.Properties[name]; p != nil {
		return p
	}
	for pattern, p := range s.PatternProperties { // at most one pattern matches
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

// fits reports whether a text has the length and matches the pattern of the schema.
func fits(s *jsonschema.Schema, text string) bool {
	length := utf8.RuneCountInString(text)
	return length >= s.MinLength && (s.MaxLength < 0 || length <= s.MaxLength) &&
		(s.Pattern == nil || s.Pattern.MatchString(text))
}

// textRule returns the rule that a text violates.
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

// isOneOf reports whether a value has one of the types of JSON Schema.
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

// in reports whether a schema is the definition, or one of its alternatives.
func in(s *jsonschema.Schema, definition string) bool {
	_, name, _ := strings.Cut(s.Location, "#/$defs/")
	rest, ok := strings.CutPrefix(name, definition)
	number, alternative := strings.CutPrefix(rest, "/anyOf/")
	return ok && (rest == "" || alternative && !strings.Contains(number, "/"))
}

// forms are the texts that do not match the schema. The later checks usually report the same
// mistake with a better message. report adds the rest.
type forms []form

type form struct {
	at   located
	rule string // "must match ^[a-z]+$"
	name bool   // the key is wrong; the entry may already have a finding
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
