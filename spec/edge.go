package spec

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// noProcessor is the index of an unknown processor. An edge with this index has a finding.
const noProcessor = -2

// arrowLetters are the characters of arrows in other notations. No name begins or ends with
// one of them.
const arrowLetters = "-<>=~"

// edgeForm is the suggestion for a malformed edge.
const edgeForm = `write "from -> to: Message"`

var (
	timerForm   = regexp.MustCompile(`^every\s+(\S.*?)(\s+as(?:\s+(\S.*))?)?$`) // groups: period, "as NAME", NAME
	colonInName = regexp.MustCompile(`^([A-Za-z][\w-]*)\s*:\s*([A-Za-z]\w*)$`)
)

func (b *builder) edges(t *Topology, v *Value) {
	for _, item := range v.Items {
		e, options, ok := b.edge(item)
		if ok {
			t.Edges = append(t.Edges, e)
			b.options = append(b.options, options)
		}
	}
}

// edge reads one item of edges: "every 1s -> a" or a mapping with one key.
func (b *builder) edge(item *Value) (e Edge, options *Value, ok bool) {
	e = Edge{From: noProcessor, To: noProcessor, Pointer: item.Pointer, Capacity: defaultCapacity, Full: Block}
	switch {
	case item.Kind == String:
		if !b.found.exact[item.Pointer] {
			b.arrow(&e, item.text(), false)
		}
	case item.Kind != Map: // the schema has reported it
		return e, nil, false
	case len(item.Fields) == 0:
		suggestion := edgeForm
		if item.At.EndLine > item.At.Line || item.At.EndColumn-item.At.Column > len("{}") {
			suggestion += `; keys that begin with "` + ignoredPrefix + `" are ignored`
		}
		b.found.add(finding.EdgeForm, item.At, item.Pointer, "an item of edges must hold an edge, got an empty mapping", suggestion)
		return e, nil, false
	default:
		if len(item.Fields) > 1 {
			b.secondKey(item)
		}
		f := item.Fields[0]
		b.arrow(&e, f.Key, true)
		b.edgeOptions(&e, f.Value)
		options = f.Value
	}
	return e, options, true
}

// secondKey reports an item of edges with more than one key.
func (b *builder) secondKey(item *Value) {
	first, second := item.Fields[0].Key, item.Fields[1].Key
	suggestion := edgeForm
	switch {
	case strings.Contains(second.Value, "->"):
		suggestion = `write "- " before it: each edge is an item of the list`
	case strings.Contains(first.Value, "->"):
		suggestion = "indent it further: it is an option of the edge"
	}
	b.found.add(finding.EdgeForm, second.At, item.Pointer, fmt.Sprintf("an item of edges must have one key, got a second one, %s", quoted(second.Value)), suggestion)
}

// edgeOptions reads the value of an edge: the name of a message, or a mapping.
func (b *builder) edgeOptions(e *Edge, v *Value) {
	switch {
	case b.found.exact[v.Pointer]:
	case e.Every > 0:
		set(b, timerKeys, e, v)
	case v.Kind == String:
		e.Message = v.text()
	default:
		set(b, edgeKeys, e, v)
	}
}

// arrow reads "from -> to", "every 1s -> to" or "every 1s as poll -> to". carries is true for a
// key, which has a message or options after it.
func (b *builder) arrow(e *Edge, key Text, carries bool) {
	e.At = key.At
	left, right, ok := strings.Cut(key.Value, "->")
	if !ok {
		b.found.add(finding.EdgeForm, key.At, e.Pointer, `an edge must have an arrow "->", got `+quoted(key.Value), edgeForm)
		return
	}
	start, end := len(strings.TrimRight(left, arrowLetters)), len(key.Value)-len(strings.TrimLeft(right, arrowLetters))
	e.FromText = key.trimmed(0, start)
	e.ToText = key.trimmed(end, len(key.Value))
	if arrow := key.Value[start:end]; arrow != "->" {
		suggestion := edgeForm
		if e.FromText.Value != "" && e.ToText.Value != "" {
			suggestion = "write " + quoted(e.FromText.Value+" -> "+e.ToText.Value)
		}
		b.found.add(finding.EdgeForm, key.within(start, end), e.Pointer, `the arrow of an edge must be "->", got `+quoted(arrow), suggestion)
		return
	}
	if i := strings.Index(right, "->"); i >= 0 {
		second := len(left) + len("->") + i
		b.found.add(finding.EdgeForm, key.within(second, second+len("->")), e.Pointer, "an edge must have one arrow, got a second one", "write an edge for each arrow")
		return
	}
	timer := timerForm.FindStringSubmatchIndex(e.FromText.Value)
	switch {
	case timer != nil:
		e.From = -1
		e.Every = b.every(e, e.FromText.part(timer[2], timer[3]))
		if timer[6] >= 0 {
			e.Timer = e.FromText.part(timer[6], timer[7])
		} else if timer[4] >= 0 {
			b.found.add(finding.EdgeForm, e.FromText.within(timer[4], timer[5]), e.Pointer, `a timer must have a name after "as", got none`, `write a name, such as "every 1s as poll", or remove "as"`)
		}
	case carries:
	case e.FromText.Value == "every":
		b.found.add(finding.EdgeForm, e.FromText.At, e.Pointer, "a timer must have a period, got none", "write "+quoted("every 1s -> "+e.ToText.Value))
		return
	case strings.Contains(e.ToText.Value, ": "): // a plain string cannot contain ": "
		b.found.add(finding.EdgeForm, key.At, e.Pointer, "an edge with a message must not be in quotes", "remove them: - "+unquoted(key.Value))
		return
	case b.colonWithoutSpace(e):
		return
	default:
		b.found.add(finding.EdgeForm, key.At, e.Pointer, "an edge must carry a message, got "+quoted(key.Value), "write "+quoted(key.Value+": Message"))
		return
	}
	if timer == nil {
		e.From = b.resolve(e, e.FromText, "from")
	}
	e.To = b.resolve(e, e.ToText, "to")
}

// every reads the period of a timer. For a wrong period it returns the shortest one, so that
// the edge still counts as a timer.
func (b *builder) every(e *Edge, period Text) time.Duration {
	d, err := time.ParseDuration(period.Value)
	switch {
	case err != nil:
		suggestion := durationHint(period.Value)
		if d := withUnit(period.Value); d != "" {
			suggestion = "write " + quoted("every "+d)
		}
		b.found.addText(finding.Form, period, "the period of a timer must be a duration, got "+quoted(period.Value), suggestion)
	case d < everyMin:
		b.found.addText(finding.OutOfRange, period, "the period of a timer must be at least "+everyMin.String()+", got "+quoted(period.Value), "write a longer period")
	default:
		return d
	}
	return everyMin
}

// colonWithoutSpace reports "a -> b:Message", which YAML reads as one string.
func (b *builder) colonWithoutSpace(e *Edge) bool {
	m := colonInName.FindStringSubmatch(e.ToText.Value)
	if m == nil {
		return false
	}
	i := strings.IndexByte(e.ToText.Value, ':')
	b.found.add(finding.EdgeForm, e.ToText.within(i, i+1), e.Pointer, "a colon must have a space after it in YAML", "write "+quoted(m[1]+": "+m[2]))
	return true
}

// resolve returns the index of the processor that an edge leads from or to.
func (b *builder) resolve(e *Edge, name Text, end string) int {
	if name.Value == "" {
		b.found.add(finding.EdgeForm, e.At, e.Pointer, "an edge must name the processor that it leads "+end, edgeForm)
		return noProcessor
	}
	candidates, declaration := b.names, ", or "+quoted(name.Value+": {external: true}")+" if its messages come from outside"
	if end == "to" {
		candidates, declaration = b.receivers, ""
	}
	if !processorNameForm.MatchString(name.Value) {
		return b.reference(name, e.Pointer, candidates, "")
	}
	return b.reference(name, e.Pointer, candidates, "declare it under processors: "+quoted(name.Value+": {}")+declaration)
}

// reference returns the index of the processor with the name. pointer leads to the value that
// needs the name. The finding has the given suggestion if no candidate is similar.
func (b *builder) reference(name Text, pointer string, candidates []string, suggestion string) int {
	if i, ok := b.named[name.Value]; ok {
		return i
	}
	if !b.declared {
		return noProcessor
	}
	if strings.HasPrefix(name.Value, ignoredPrefix) {
		suggestion = `choose another name: keys that begin with "` + ignoredPrefix + `" are ignored`
	} else if best := b.similar.to(name.Value, candidates); best != "" {
		suggestion = didYouMean(best)
	}
	b.found.add(finding.NotDeclared, name.At, pointer, "processor "+quoted(name.Value)+" is not declared", suggestion)
	return noProcessor
}

// trimmed returns t.Value[start:end] without surrounding white space.
func (t Text) trimmed(start, end int) Text {
	s := t.Value[start:end]
	start += len(s) - len(strings.TrimLeft(s, " \t\n"))
	end -= len(s) - len(strings.TrimRight(s, " \t\n"))
	return t.part(start, max(start, end))
}
