package spec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"gopkg.in/yaml.v3"

	"github.com/topogen/topogen/spec/finding"
)

func (c *schemaChecker) empty(at located) {
	c.found.add(finding.Form, at.key(), at.value.Pointer, at.subject()+" must have at least one entry, got none", "")
}

// unknownKeys reports unknown keys. It returns the known keys that they were suggested to be.
func (c *schemaChecker) unknownKeys(s *jsonschema.Schema, at located) (meant []string) {
	if s.AdditionalProperties != false {
		return nil
	}
	known, shown := []string(nil), ""
	for _, f := range at.value.Fields {
		name := f.Key.Value
		if s.Properties[name] != nil || c.found.exact[f.Key.Pointer] {
			continue
		}
		if known == nil { // only once, because a file may have many unknown keys
			known = slices.Sorted(maps.Keys(s.Properties))
			shown = enumerate(listedKeys(s, at.value, known), "and")
		}
		if in(s, "timer") && edgeKeys[name] != nil {
			c.found.addText(finding.TimerHas, f.Key, "a timer must not have "+name, "remove it")
			continue
		}
		suggestion := "the keys here are " + shown
		if len(known) == 1 {
			suggestion = "the only key here is " + known[0]
		}
		if best := c.similar.to(name, known); best != "" {
			suggestion = didYouMean(best)
			meant = append(meant, best)
			c.found.follow(at.value.Pointer + "/" + best)
			c.misspelled[at.value.Pointer] = true
		}
		c.found.addText(finding.UnknownKey, f.Key, "unknown key "+quoted(name), suggestion)
	}
	return meant
}

// listedKeys returns the keys that a suggestion lists. For a processor these are the keys of its
// kind.
func listedKeys(s *jsonschema.Schema, v *Value, known []string) []string {
	if !in(s, "processor") {
		return known
	}
	if f := v.field("kind"); f != nil && machineKeys[MachineKind(f.Value.Text)] != nil {
		return slices.Sorted(slices.Values(machineKeys[MachineKind(f.Value.Text)]))
	}
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name != "kind" && isMachineKey(name) })
}

func (c *schemaChecker) missingKeys(s *jsonschema.Schema, at located, meant []string) {
	for _, name := range s.Required {
		if at.value.field(name) == nil && !slices.Contains(meant, name) {
			c.found.follow(at.value.Pointer + "/" + name)
			c.found.add(finding.MissingKey, at.key(), at.value.Pointer, fmt.Sprintf("%s must have the key %s", at.subject(), name), missingHint[name])
		}
	}
}

// missingHint holds a suggestion for each missing key.
var missingHint = map[string]string{
	"version": `write "version: 1"`,
	"message": "name the message that the edge carries",
	"peers":   `name each node with its address: {n1: "127.0.0.1:7101"}`,
	"nodes":   `name each node with its address: {n1: "127.0.0.1:7400"}`,
	"edges":   `write "edges: []" if there are none`,
	"store":   `name a folder, such as "store: ./promises"`,
}

func (c *schemaChecker) wrongType(s *jsonschema.Schema, at located, wanted []string) {
	v := at.value
	switch {
	case v.Kind == Null:
		c.found.add(finding.WrongType, v.At, v.Pointer, at.subject()+" must have a value, got nothing", nullHint(s))
		return
	case len(s.Enum) > 0: // a list of the choices helps more than the kind
		c.notAllowed(s, at)
		return
	case in(s, "timer") && v.Kind == String:
		c.found.add(finding.TimerHas, v.At, v.Pointer, "a timer must not carry a message, got "+quoted(v.Text)+": it sends topo.Tick", "remove the message")
		return
	case (in(s, "duration") || in(s, "durationOrZero")) && v.Kind != List && v.Kind != Map:
		c.found.add(finding.Form, v.At, v.Pointer, at.subject()+" must be a duration, got "+clip(v.Text), durationHint(v.Text))
		return
	}
	var words []string
	if in(s, "durationOrZero") {
		words, wanted = []string{"a duration"}, nil
	}
	for _, name := range wanted {
		words = append(words, typeWords[name])
	}
	suggestion := retype(v, wanted)
	if v.Kind == String && isPlainPath(v.Text) {
		switch {
		case in(s, "log"):
			suggestion = fmt.Sprintf("write \"log: {path: %s}\"", v.Text)
		case v.Pointer == "/durable":
			suggestion = fmt.Sprintf("write \"durable: {store: %s}\"", v.Text)
		}
	}
	if v.Kind == List && at.subject() == "processors" {
		suggestion = processorsHint(v)
	}
	if v.Kind == List && in(s, "nodes") {
		suggestion = missingHint["nodes"]
	}
	c.found.add(finding.WrongType, at.shown(), v.Pointer,
		fmt.Sprintf("%s must be %s, got %s", at.subject(), enumerate(words, "or"), Describe(v)), suggestion)
}

var pathText = regexp.MustCompile(`^[\w./-]+$`)

// isPlainPath reports whether a text looks like a path, and is the same text in YAML without quotes,
// unlike "2024" and "null".
func isPlainPath(text string) bool {
	var plain any
	return pathText.MatchString(text) && yaml.Unmarshal([]byte(text), &plain) == nil && plain == any(text)
}

// processorsHint returns the suggestion for a list of processors, which must be a mapping.
func processorsHint(list *Value) string {
	name := "feed"
	if len(list.Items) > 0 && list.Items[0].Kind == String {
		name = list.Items[0].Text
	}
	return fmt.Sprintf("write %s in place of %s", quoted(name+": {}"), quoted("- "+name))
}

// nullHint returns the suggestion for a missing value.
func nullHint(s *jsonschema.Schema) string {
	switch {
	case in(s, "timer"):
		return "remove the colon"
	case in(s, "edge"):
		return "name the message that the edge carries"
	case in(s, "processor"):
		return "write {} if it has no options"
	}
	return ""
}

var typeWords = map[string]string{
	"string": "a string", "integer": "an integer", "number": "a number",
	"boolean": "true or false", "object": "a mapping", "array": "a list",
}

// retype says how to write the value so that it has one of the wanted types.
func retype(v *Value, wanted []string) string {
	wants := func(name string) bool { return slices.Contains(wanted, name) }
	switch {
	case v.Kind == String && wants("boolean"):
		switch strings.ToLower(v.Text) {
		case "yes", "on", "y", "true":
			return "write true"
		case "no", "off", "n", "false":
			return "write false"
		}
	case v.Kind == String && wants("integer"):
		if _, err := strconv.Atoi(v.Text); err == nil {
			return "write " + v.Text + " without quotes"
		}
	case wants("object"):
	case wants("string") && !wants("integer") && (v.Kind == Int || v.Kind == Float || v.Kind == Bool):
		return "put it in quotes: " + quoted(v.Text)
	case v.Kind == Map && wants("array"):
		return `begin each item with "- "`
	}
	return ""
}

func (c *schemaChecker) notAllowed(s *jsonschema.Schema, at located) {
	var words []string
	for _, choice := range s.Enum {
		words = append(words, fmt.Sprint(choice))
	}
	suggestion := ""
	if best := c.similar.to(at.value.Text, words); best != "" {
		suggestion = didYouMean(best)
	}
	switch {
	case in(s, "route"):
		words = append(words, "a mapping with id, range or node")
	case in(s, "placement"):
		words = append(words, "a mapping such as {node: n1}")
	case in(s, "restart"):
		words = append(words, "a mapping such as {policy: on-failure}")
	case in(s, "on_error"):
		words = append(words, "a mapping such as {then: retry}")
	}
	c.found.add(finding.NotAllowed, at.value.At, at.value.Pointer,
		fmt.Sprintf("%s must be %s, got %s", at.subject(), enumerate(words, "or"), Describe(at.value)), suggestion)
}

// key returns the range of the key, or of the item for an item of a list.
func (l located) key() finding.Range {
	switch {
	case l.field != nil:
		return l.field.Key.At
	case l.value.Pointer == "":
		return finding.Range{Line: 1, Column: 1, EndLine: 1, EndColumn: 1}
	}
	return l.value.At
}

// shown returns the range to underline: the key of a collection, or another value itself.
func (l located) shown() finding.Range {
	if l.value.Kind == Map || l.value.Kind == List {
		return l.key()
	}
	return l.value.At
}

var wordForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// subject returns the name of the value for a message.
func (l located) subject() string {
	switch {
	case l.field != nil && wordForm.MatchString(l.field.Key.Value) && len(l.field.Key.Value) <= nameMax:
		return l.field.Key.Value
	case l.field != nil:
		return quoted(l.field.Key.Value)
	case l.value.Pointer == "":
		return "the topology"
	}
	return "this item"
}

// Describe returns a value in the words of a message, such as `the string "x"` or "a list".
func Describe(v *Value) string {
	switch v.Kind {
	case Null:
		return "nothing"
	case Bool, Int, Float:
		return strings.TrimSuffix(clip(v.Text), ".") // without the dot of "5.", which would look like the end of a sentence
	case String:
		return "the string " + quoted(v.Text)
	case List:
		return "a list"
	}
	return "a mapping"
}

// enumerate joins words in the form "a, b or c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
