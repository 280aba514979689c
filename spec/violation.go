package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// report makes the findings of one violation.
func (c *schemaChecker) report(v violation) {
	switch v.keyword {
	case "additionalProperties":
		c.unknownKeys(v)
		return
	case "required":
		c.missingKeys(v)
		return
	}
	if c.found.exact[v.pointer] {
		return // the walk or an earlier keyword has said it
	}
	value := v.at.value
	switch v.keyword {
	case "type":
		if value.Kind != Null && v.schema["enum"] != nil && len(typesOf(v.rule)) == 1 {
			v.rule = v.schema["enum"] // the choices say more than the kind
			c.notAllowed(v)
			return
		}
		c.wrongType(v)
	case "const":
		c.found.add(finding.Version, value.At, v.pointer, fmt.Sprintf("%s must be %v, got %s", v.subject(), v.rule, Describe(value)), fmt.Sprintf("write %v without quotes", v.rule))
	case "enum":
		c.notAllowed(v)
	case "minimum", "maximum":
		c.outOfRange(v)
	case "minProperties", "minItems":
		c.found.add(finding.Form, v.at.key(), v.pointer, v.subject()+" must have at least one entry, got none", "")
	default:
		c.forms = append(c.forms, v)
	}
}

func (c *schemaChecker) unknownKeys(v violation) {
	properties, _ := v.schema["properties"].(map[string]any)
	known := slices.Sorted(maps.Keys(properties))
	shown := enumerate(shownKeys(v, known), "and") // once: there may be as many unknown keys as a file holds
	for _, f := range v.at.value.Fields {
		name := f.Key.Value
		if _, ok := properties[name]; ok || c.found.exact[f.Key.Pointer] {
			continue
		}
		if v.in("timer") && edgeKeys[name] != nil {
			c.found.addText(finding.TimerHas, f.Key, "a timer has no "+name, "leave it out")
			continue
		}
		suggestion := "the keys here are " + shown
		if len(known) == 1 {
			suggestion = "the only key here is " + known[0]
		}
		if best := c.similar.to(name, known); best != "" {
			suggestion = didYouMean(best)
			c.meant[v.pointer+"/"+best] = true
		}
		c.found.addText(finding.UnknownKey, f.Key, "unknown key "+quoted(name), suggestion)
	}
}

// shownKeys are those of the known keys that a suggestion lists: of a processor
// those of its kind.
func shownKeys(v violation, known []string) []string {
	if !v.in("processor") {
		return known
	}
	if f := v.at.value.field("kind"); f != nil && machineKeys[MachineKind(f.Value.Text)] != nil {
		return slices.Sorted(slices.Values(machineKeys[MachineKind(f.Value.Text)]))
	}
	return slices.DeleteFunc(slices.Clone(known), func(name string) bool { return name != "kind" && ofMachines(name) })
}

func (c *schemaChecker) missingKeys(v violation) {
	for _, rule := range typesOf(v.rule) {
		name, _ := rule.(string)
		has := slices.ContainsFunc(v.at.value.Fields, func(f Field) bool { return f.Key.Value == name })
		if !has && !c.meant[v.pointer+"/"+name] {
			c.found.add(finding.MissingKey, v.at.key(), v.pointer, fmt.Sprintf("%s has no %s", v.subject(), name), missingHint(name))
		}
	}
}

func missingHint(name string) string {
	switch name {
	case "version":
		return `write "version: 1"`
	case "message":
		return "name the message that the edge carries"
	case "peers":
		return `name each node with its address: {n1: "127.0.0.1:7101"}`
	case "edges":
		return `write "edges: []" if there are none`
	}
	return ""
}

func (c *schemaChecker) wrongType(v violation) {
	value := v.at.value
	wanted := typesOf(v.rule)
	switch {
	case value.Kind == Null:
		c.found.add(finding.WrongType, value.At, v.pointer, v.subject()+" has no value", instead(v))
		return
	case v.in("timer") && value.Kind == String:
		c.found.add(finding.TimerHas, value.At, v.pointer, "a timer sends topo.Tick and no other message", "leave the message out")
		return
	case (v.in("duration") || v.in("durationOrZero")) && value.Kind != List && value.Kind != Map:
		c.found.add(finding.Form, value.At, v.pointer, clip(value.Text)+" is not a duration", durationHint(value.Text))
		return
	}
	var words []string
	if v.in("durationOrZero") {
		words, wanted = []string{"a duration"}, nil
	}
	for _, w := range wanted {
		if word := typeWords[fmt.Sprint(w)]; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	c.found.add(finding.WrongType, v.shown(), v.pointer,
		fmt.Sprintf("%s must be %s, got %s", v.subject(), enumerate(words, "or"), Describe(value)), retype(value, wanted))
}

// instead says what to write where there is nothing.
func instead(v violation) string {
	switch {
	case v.in("timer"):
		return "leave the colon out"
	case v.in("edge"):
		return "name the message that the edge carries"
	case v.in("processor"):
		return "write {} if there is nothing to say"
	}
	return ""
}

// in reports whether the keyword stands directly in a definition of the schema,
// or in one of its alternatives.
func (v violation) in(definition string) bool {
	rest, ok := strings.CutPrefix(v.path, "/$defs/"+definition+"/")
	return ok && (rest == v.keyword || strings.HasPrefix(rest, "anyOf/") && strings.Count(rest, "/") == 2)
}

var typeWords = map[string]string{
	"string": "a text", "integer": "a whole number", "number": "a number",
	"boolean": "true or false", "object": "a mapping", "array": "a list",
}

// retype says how to write the value as what is wanted.
func retype(v *Value, wanted []any) string {
	wants := func(name string) bool { return slices.Contains(wanted, any(name)) }
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

func (c *schemaChecker) notAllowed(v violation) {
	value := v.at.value
	var words []string
	for _, w := range typesOf(v.rule) {
		words = append(words, fmt.Sprint(w))
	}
	suggestion := ""
	if best := c.similar.to(value.Text, words); best != "" {
		suggestion = didYouMean(best)
	}
	if v.in("route") {
		words = append(words, "a mapping with id or range")
	}
	c.found.add(finding.NotAllowed, value.At, v.pointer,
		fmt.Sprintf("%s must be %s, got %s", v.subject(), enumerate(words, "or"), Describe(value)), suggestion)
}

func (c *schemaChecker) outOfRange(v violation) {
	low, _ := v.schema["minimum"].(float64)
	high, ok := v.schema["maximum"].(float64)
	if ok && low == high {
		c.forms = append(c.forms, v) // a duration that may also be 0: the parser says more
		return
	}
	c.found.add(finding.OutOfRange, v.at.value.At, v.pointer,
		fmt.Sprintf("%s must be from %.0f to %.0f, got %s", v.subject(), low, high, clip(v.at.value.Text)), "")
}

// shown is the range to underline: a collection's key, else the value.
func (v violation) shown() finding.Range {
	if v.at.value.Kind == Map || v.at.value.Kind == List {
		return v.at.key()
	}
	return v.at.value.At
}

// subject names the value in a message.
func (v violation) subject() string {
	if v.at.field != nil {
		name := v.at.field.Key.Value
		if isWord(name) {
			return name
		}
		return quoted(name)
	}
	if v.pointer == "" {
		return "the topology"
	}
	return "this item"
}

func isWord(name string) bool {
	for _, r := range name {
		if r != '_' && r != '-' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9') {
			return false
		}
	}
	return name != "" && len(name) <= nameMax
}

// Describe says what a value is.
func Describe(v *Value) string {
	switch v.Kind {
	case Null:
		return "nothing"
	case Bool, Int, Float:
		return strings.TrimSuffix(clip(v.Text), ".") // "5." would end the sentence
	case String:
		return "the text " + quoted(v.Text)
	case List:
		return "a list"
	}
	return "a mapping"
}

// enumerate joins words as prose does: "a, b or c".
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
