package spec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/topogen/topogen/spec/finding"
	"gopkg.in/yaml.v3"
)

const ignoredPrefix = "x-" // keys with this prefix belong to other tools

// walker turns the nodes of the YAML library into Values with positions. It resolves aliases and
// merge keys and finds repeated keys itself. The decoder of the library would do that, but it
// takes quadratic time and memory for repeated keys.
type walker struct {
	source    source
	found     *collector
	open      map[*yaml.Node]bool // the enclosing collections that have an anchor
	inAlias   int                 // number of enclosing aliases
	nodes     int                 // as written
	repeated  int                 // by aliases and merge keys
	exhausted bool                // a limit was reached; the rest is not read
}

// value returns the Value of a node, and the offset after the node.
func (w *walker) value(n *yaml.Node, pointer string, depth int) (v *Value, end int) {
	start := w.source.contentStart(n)
	if !w.enter(n, start, pointer, depth) {
		return &Value{At: w.source.span(start, start), Pointer: pointer}, start
	}
	if n.Kind == yaml.AliasNode {
		return w.alias(n, start, pointer, depth)
	}
	if n.Anchor != "" {
		w.open[n] = true
		defer delete(w.open, n)
	}
	v = &Value{Pointer: pointer}
	switch n.Kind {
	case yaml.MappingNode:
		fields := w.mapping(n, start, pointer, depth)
		v.Kind, v.Fields = Map, fields.list
		end = w.end(n, fields.end)
	case yaml.SequenceNode:
		v.Kind, end = List, start
		for i, item := range n.Content {
			inner, after := w.value(item, pointer+"/"+strconv.Itoa(i), depth+1)
			v.Items = append(v.Items, inner)
			end = max(end, after)
		}
		end = w.end(n, end)
	default:
		var problem, suggestion string
		v.Kind, problem, suggestion = scalar(n)
		v.Text, end = n.Value, w.source.scalarEnd(n, start)
		if problem != "" {
			w.found.add(finding.Scalar, w.source.span(start, end), pointer, problem, suggestion)
		}
	}
	v.At = w.source.span(start, end)
	return v, end
}

// enter counts a node against the limits and reports whether to go on.
func (w *walker) enter(n *yaml.Node, start int, pointer string, depth int) bool {
	if w.exhausted {
		return false
	}
	problem := ""
	if w.inAlias == 0 {
		w.nodes++
	} else {
		w.repeated++
	}
	switch {
	case depth > depthMax:
		problem = fmt.Sprintf("values must be nested at most %d deep, got more", depthMax)
	case w.nodes > nodesMax:
		problem = fmt.Sprintf("a topology file must have at most %d keys and values, got more", nodesMax)
	case w.repeated > aliasNodesMax:
		problem = fmt.Sprintf("aliases must repeat at most %d keys and values, got more", aliasNodesMax)
	default:
		return true
	}
	w.exhausted = true
	end := start
	if n.Kind == yaml.ScalarNode {
		end = w.source.scalarEnd(n, start)
	} else if start < len(w.source.Bytes) {
		end++
	}
	w.found.add(finding.Limit, w.source.span(start, end), pointer, problem, "")
	return false
}

// end returns the offset after a collection whose last element ends at last.
func (w *walker) end(n *yaml.Node, last int) int {
	if n.Style&yaml.FlowStyle == 0 {
		return last
	}
	closing := byte('}')
	if n.Kind == yaml.SequenceNode {
		closing = ']'
	}
	if len(n.Content) == 0 {
		last = min(last+1, len(w.source.Bytes)) // after the opening bracket
	}
	return w.source.flowEnd(last, closing)
}

// alias returns the value that an alias repeats. The value has the position of the alias. The
// values inside it have the positions at which they are written.
func (w *walker) alias(n *yaml.Node, start int, pointer string, depth int) (v *Value, end int) {
	end = w.source.aliasEnd(n, start)
	if w.open[n.Alias] {
		w.found.add(finding.Alias, w.source.span(start, end), pointer, fmt.Sprintf("an alias must not be inside its own anchor, got *%s", n.Value), "")
		return &Value{At: w.source.span(start, end), Pointer: pointer}, end
	}
	w.inAlias++
	v, _ = w.value(n.Alias, pointer, depth)
	w.inAlias--
	v.At = w.source.span(start, end)
	return v, end
}

// fields holds the keys of one mapping in order, both its own and merged ones.
type fields struct {
	list  []Field
	index map[string]int // into list
	own   map[string]int // lines of the own keys
	end   int
}

func (w *walker) mapping(n *yaml.Node, start int, pointer string, depth int) *fields {
	size := len(n.Content) / 2
	f := &fields{index: make(map[string]int, size), own: make(map[string]int, size), end: start}
	for i := 0; i+1 < len(n.Content) && !w.exhausted; i += 2 {
		key, ok := w.key(n.Content[i], pointer, depth+1)
		if !ok {
			f.end = max(f.end, w.skip(n.Content[i+1]))
			continue
		}
		child := n.Content[i+1]
		if line, ok := f.own[key.Value]; ok {
			w.found.addText(finding.DuplicateKey, key, fmt.Sprintf("the key %q must appear once, and line %d has it too", clip(key.Value), line), "remove one of them")
			f.end = max(f.end, w.skip(child))
			continue
		}
		f.own[key.Value] = key.At.Line
		switch {
		case n.Content[i].ShortTag() == "!!merge":
			f.end = max(f.end, w.merge(f, child, pointer, depth+1))
		case strings.HasPrefix(key.Value, ignoredPrefix):
			f.end = max(f.end, w.skip(child))
		default:
			v, end := w.value(child, key.Pointer, depth+1)
			if v.Kind == Null && v.At.Line == v.At.EndLine && v.At.Column == v.At.EndColumn {
				v.At = key.At // there is no text to underline, so the finding underlines the key
			}
			f.set(Field{Key: key, Value: v})
			f.end = max(f.end, end)
		}
	}
	return f
}

// set adds an own field of the mapping. It replaces a merged field of the same name.
func (f *fields) set(field Field) {
	name := field.Key.Value
	if i, ok := f.index[name]; ok {
		f.list[i] = field
	} else {
		f.index[name] = len(f.list)
		f.list = append(f.list, field)
	}
}

// merge adds the fields of the value of a merge key, which is a mapping or a list of mappings. A
// field of an earlier mapping has precedence, and an own field has precedence over both.
func (w *walker) merge(f *fields, n *yaml.Node, pointer string, depth int) int {
	start := w.source.contentStart(n)
	if n.Kind == yaml.SequenceNode {
		end := start
		for _, item := range n.Content {
			end = max(end, w.mergeOne(f, item, pointer, depth+1))
		}
		return w.end(n, end)
	}
	return w.mergeOne(f, n, pointer, depth)
}

func (w *walker) mergeOne(f *fields, n *yaml.Node, pointer string, depth int) int {
	target := n
	if n.Kind == yaml.AliasNode {
		target = n.Alias
	}
	v, end := w.value(n, pointer, depth)
	if target.Kind != yaml.MappingNode {
		w.found.add(finding.Merge, v.At, pointer, "<< must merge a mapping, got "+Describe(v), "")
		return end
	}
	for _, field := range v.Fields {
		if _, ok := f.index[field.Key.Value]; !ok {
			f.set(field)
		}
	}
	return end
}

// key returns a key of a mapping, which must be a string.
func (w *walker) key(n *yaml.Node, pointer string, depth int) (Text, bool) {
	start := w.source.contentStart(n)
	if !w.enter(n, start, pointer, depth) {
		return Text{}, false
	}
	end, scalar := w.source.scalarEnd(n, start), n
	if n.Kind == yaml.AliasNode {
		end, scalar = w.source.aliasEnd(n, start), n.Alias
	}
	at := w.source.span(start, end)
	if scalar.Kind != yaml.ScalarNode {
		if start < len(w.source.Bytes) {
			at = w.source.span(start, start+1)
		}
		w.found.add(finding.KeyNotText, at, pointer, "a key must be a string, got a mapping or a list", "")
		return Text{}, false
	}
	key := Text{Value: scalar.Value, At: at, Pointer: pointer + "/" + escapePointer(scalar.Value)}
	switch tag := scalar.ShortTag(); {
	case tag == "!!str", tag == "!!merge":
		return key, true
	case scalar.Style&yaml.TaggedStyle != 0:
		w.found.add(finding.KeyNotText, at, pointer, fmt.Sprintf("a key must be a string, got %q with the tag %s", clip(scalar.Value), clip(tag)), "remove the tag")
	default:
		w.found.add(finding.KeyNotText, at, pointer, fmt.Sprintf("a key must be a string, but YAML reads %s as another type", clip(scalar.Value)), fmt.Sprintf("put it in quotes: %q", clip(scalar.Value)))
	}
	return Text{}, false
}

// skip returns the end of a node that is not read.
func (w *walker) skip(n *yaml.Node) int {
	end := w.source.contentStart(n)
	switch n.Kind {
	case yaml.AliasNode:
		return w.source.aliasEnd(n, end)
	case yaml.ScalarNode:
		return w.source.scalarEnd(n, end)
	}
	if len(n.Content) > 0 {
		end = w.skip(n.Content[len(n.Content)-1])
	}
	return w.end(n, end)
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(key string) string { return pointerEscaper.Replace(key) }
