package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"

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

// schemaTree is the schema as plain data, for reading what a keyword says.
var schemaTree = sync.OnceValue(func() any {
	var tree any
	if err := json.Unmarshal(schemas.Topology, &tree); err != nil {
		panic(err)
	}
	return tree
})

// forms are complaints of the schema about the form of a text. The meaning check
// says the same more precisely; what it does not say is reported afterwards.
type forms []violation

func (f forms) report(found *collector) {
	for _, v := range f {
		name := strings.Contains(v.path, "/propertyNames/") // the key is wrong: its entry may have said so
		if found.broken[v.pointer] || name && found.exact[v.pointer[:strings.LastIndexByte(v.pointer, '/')]] {
			continue
		}
		subject, at := v.subject(), v.shown()
		if name {
			at = v.at.key()
		} else if v.at.value.Kind == String {
			subject = quoted(v.at.value.Text)
		}
		found.add(finding.Form, at, v.pointer, subject+" does not have the form that is wanted here", "")
	}
}

// violation is one keyword of the schema that one value does not keep.
type violation struct {
	pointer string
	at      located
	keyword string
	rule    any            // the keyword's value in the schema
	schema  map[string]any // in which the keyword stands
	path    string         // of the keyword in the schema
}

// located is a value of the file with its key; the key is nil in a list.
type located struct {
	field *Field
	value *Value
}

func (l located) key() finding.Range {
	if l.field != nil {
		return l.field.Key.At
	}
	if l.value.Pointer == "" {
		return finding.Range{Line: 1, Column: 1, EndLine: 1, EndColumn: 1}
	}
	return l.value.At
}

// schemaChecker turns what the validator says into findings at their places.
type schemaChecker struct {
	found   *collector
	similar *Similar
	index   map[string]located
	meant   map[string]bool // pointers of missing keys for which a wrong one stands
	forms   forms
}

func checkSchema(tree result, found *collector, similar *Similar) forms {
	err := compiledSchema().Validate(tree.data)
	if err == nil {
		return nil
	}
	c := &schemaChecker{found: found, similar: similar, index: map[string]located{}, meant: map[string]bool{}}
	failure, ok := err.(*jsonschema.ValidationError)
	if !ok { // the data is made by the walk, so that this cannot be
		found.add(finding.Form, finding.Range{}, "", "the schema cannot be applied: "+err.Error(), "")
		return nil
	}
	c.locate(located{value: tree.value})
	violations := c.violations(failure)
	slices.SortStableFunc(violations, func(a, b violation) int {
		return cmp.Or(
			cmp.Compare(a.at.value.At.Line, b.at.value.At.Line),
			cmp.Compare(a.at.value.At.Column, b.at.value.At.Column),
			cmp.Compare(a.pointer, b.pointer),
			cmp.Compare(keywordOrder(a.keyword), keywordOrder(b.keyword)),
			cmp.Compare(a.path, b.path),
		)
	})
	for _, v := range violations {
		if !c.follows(v) {
			c.report(v)
		}
	}
	return c.forms
}

// follows reports whether a violation is inside of an item of edges, under a key
// that is no edge or no more the first: the builder reports the key.
func (c *schemaChecker) follows(v violation) bool {
	rest, ok := strings.CutPrefix(v.pointer, "/edges/")
	number, _, below := strings.Cut(rest, "/")
	if !ok || !below {
		return false
	}
	first := c.index["/edges/"+number].value.Fields[0].Key
	return !strings.Contains(first.Value, "->") || v.pointer != first.Pointer && !strings.HasPrefix(v.pointer, first.Pointer+"/")
}

// keywordOrder puts a wrong key before the missing key that it was meant to be.
func keywordOrder(keyword string) int {
	return slices.Index([]string{"type", "const", "enum", "additionalProperties", "required"}, keyword)
}

func (c *schemaChecker) locate(l located) {
	c.index[l.value.Pointer] = l
	for i := range l.value.Fields {
		c.locateField(&l.value.Fields[i])
	}
	for _, item := range l.value.Items {
		c.locate(located{value: item})
	}
}

func (c *schemaChecker) locateField(f *Field) {
	l := located{field: f, value: f.Value}
	c.index[f.Key.Pointer] = l
	for i := range f.Value.Fields {
		c.locateField(&f.Value.Fields[i])
	}
	for _, item := range f.Value.Items {
		c.locate(located{value: item})
	}
}

// violations returns the leaves of the tree of errors that the validator gives.
func (c *schemaChecker) violations(e *jsonschema.ValidationError) []violation {
	_, fragment, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	path, keyword := fragment, ""
	if i := strings.LastIndexByte(fragment, '/'); i >= 0 {
		path, keyword = fragment[:i], fragment[i+1:]
	}
	switch {
	case keyword == "anyOf":
		return c.nearest(e)
	case len(e.Causes) > 0:
		var all []violation
		for _, cause := range e.Causes {
			all = append(all, c.violations(cause)...)
		}
		return all
	}
	pointer, err := url.PathUnescape(e.InstanceLocation)
	if err != nil {
		pointer = e.InstanceLocation
	}
	at, ok := c.index[pointer]
	if !ok {
		at = c.index[""]
	}
	v := violation{pointer: pointer, at: at, keyword: keyword, path: fragment}
	v.schema, _ = resolveSchema(path).(map[string]any)
	v.rule = v.schema[keyword]
	return []violation{v}
}

// nearest returns the violations of the alternative that was probably meant: one
// of the value's own kind, and of these the one with the fewest violations.
func (c *schemaChecker) nearest(e *jsonschema.ValidationError) []violation {
	var best []violation
	var kinds violation
	var wanted []any
	for _, branch := range e.Causes {
		all := c.violations(branch)
		i := slices.IndexFunc(all, func(v violation) bool {
			return v.keyword == "type" && v.pointer == unescapedLocation(e)
		})
		switch {
		case i >= 0:
			kinds = all[i]
			wanted = append(wanted, typesOf(all[i].rule)...)
		case best == nil || len(all) < len(best):
			best = all
		}
	}
	if best != nil {
		return best
	}
	kinds.rule = wanted
	return []violation{kinds}
}

func unescapedLocation(e *jsonschema.ValidationError) string {
	pointer, err := url.PathUnescape(e.InstanceLocation)
	if err != nil {
		return e.InstanceLocation
	}
	return pointer
}

// resolveSchema returns the part of the schema at a pointer.
func resolveSchema(pointer string) any {
	at := schemaTree()
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if part == "" {
			continue
		}
		if unescaped, err := url.PathUnescape(part); err == nil {
			part = unescaped
		}
		switch node := at.(type) {
		case map[string]any:
			at = node[pointerUnescaper.Replace(part)]
		case []any:
			i := 0
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i >= len(node) {
				return nil
			}
			at = node[i]
		default:
			return nil
		}
	}
	return at
}

func typesOf(rule any) []any {
	if list, ok := rule.([]any); ok {
		return list
	}
	return []any{rule}
}
