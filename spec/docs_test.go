package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/spec/finding"
	"github.com/topogen/topogen/spec/internal/golden"
)

// Pages of docs/reference are completed or written: go test ./spec -run Reference -update.
// The page of findings is the catalogue: its table, and what topogen says about an
// example, are made from its sections. The page of the format is made from the schema.

// hundreds are the groups of findings, each with a page of its own.
var hundreds = []struct{ prefix, title, about string }{
	{"TG1", "syntax and schema", "These findings report a file that is not a valid topology file: YAML, keys and values."},
	{"TG2", "topology", "These findings report a topology that cannot work, such as an edge to an unknown processor."},
	{"TG3", "Go code", "These findings report Go code that does not match the topology, such as a missing handler."},
	{"TG4", "warnings", "These findings are warnings. They fail the build only with `--strict`."},
	{"TG5", "files", "These findings report files that topogen cannot read or write."},
}

func TestReferenceOfFindings(t *testing.T) {
	var index strings.Builder
	index.WriteString(`# Findings

These are the findings of ` + "`topogen build` and `topogen check`" + `. A code never changes its meaning. ` + "`topogen explain CODE`" + ` prints the section of a code.

Each section gives the reason, an example that causes the finding and an example that does not. If an example of TG1xx, TG2xx or TG40x is a
complete file, a test checks it.

| page | findings about |
|---|---|
`)
	for _, h := range hundreds {
		fmt.Fprintf(&index, "| [%sxx](findings/%sxx.md) | %s |\n", h.prefix, strings.ToLower(h.prefix), h.title)
	}
	index.WriteString("\n| code | severity | finding |\n|---|---|---|\n")
	pages := make(map[string]*strings.Builder)
	for _, h := range hundreds {
		pages[h.prefix] = new(strings.Builder)
		fmt.Fprintf(pages[h.prefix], "# Findings %sxx: %s\n\n%s [All findings](../findings.md) lists every code.\n", h.prefix, h.title, h.about)
	}
	for _, code := range finding.Codes() {
		e, _ := finding.Explain(code)
		anchor, prefix := strings.ToLower(code), code[:len("TG1")]
		if pages[prefix] == nil {
			t.Fatalf("%s has no page", code)
		}
		fmt.Fprintf(&index, "| <a id=\"%s\"></a>[%s](findings/%sxx.md#%s) | %s | %s |\n", anchor, code, strings.ToLower(prefix), anchor, e.Severity, e.Title)
		writeSection(pages[prefix], e)
	}
	golden.Compare(t, "../docs/reference/findings.md", []byte(index.String()))
	for _, h := range hundreds {
		golden.Compare(t, "../docs/reference/findings/"+strings.ToLower(h.prefix)+"xx.md", []byte(pages[h.prefix].String()))
	}
}

func writeSection(out *strings.Builder, e finding.Explanation) {
	fmt.Fprintf(out, "\n<a id=\"%s\"></a>\n\n## %s: %s\n\n%s\n", strings.ToLower(e.Code), e.Code, e.Title, e.Reason)
	for _, example := range []struct{ title, text string }{{"Wrong", e.Wrong}, {"Right", e.Right}} {
		if example.text == "" {
			continue
		}
		fmt.Fprintf(out, "\n%s:\n\n```%s\n%s\n```\n", example.title, language(example.text), strings.TrimRight(example.text, "\n"))
		if example.title == "Wrong" {
			writeReport(out, e.Code, example.text)
		}
	}
}

func language(example string) string {
	for _, word := range []string{"func ", "type "} {
		if strings.HasPrefix(example, word) {
			return "go"
		}
	}
	return "yaml"
}

// writeReport writes the finding of an example, if this package reports it.
func writeReport(out *strings.Builder, code, example string) {
	_, findings := Parse("topology.yml", []byte(example))
	findings = slices.DeleteFunc(findings, func(f finding.Finding) bool { return f.Code != code })
	if len(findings) == 0 {
		return
	}
	out.WriteString("\n```text\n")
	_ = finding.WriteText(out, findings[:1], map[string][]byte{"topology.yml": []byte(example)}, false)
	out.WriteString("```\n")
}

func TestReferenceOfTheFormat(t *testing.T) {
	var out strings.Builder
	out.WriteString(`# topology.yml, version 1

A topology file says which processors exist and which edges carry which message between them. This page is the reference of its keys, made from
` + "`schemas/topology.schema.json`" + `, with which editors complete and check a file that begins with

` + "```yaml\n# yaml-language-server: $schema=./topology.schema.json\n```" + `

An example with most of what there is:

` + "```yaml\n" + strings.TrimRight(string(read(t, "testdata/parse/clean-contract/input.yml")), "\n") + `
` + "```" + `

And one that says what follows when processors fail:

` + "```yaml\n" + strings.TrimRight(string(read(t, "testdata/parse/clean-failures/input.yml")), "\n") + "\n```" + `

And state machines:

` + "```yaml\n" + strings.TrimRight(string(read(t, "testdata/parse/clean-machines/input.yml")), "\n") + "\n```\n")
	for _, section := range []struct{ title, pointer, text string }{
		{"The file", "", "The keys of the file, in any order."},
		{"processors", "/$defs/processor", "A mapping from names to these keys. [Names](#names) have a form. " +
			"A processor without options is written `{}`. An external processor has no other key. One with a `kind` is a machine of the runtime: kind fsm has state and update, and perhaps controller, log and raft; " +
			"kind raft has controller, peers and log, and perhaps the other keys of [raft](#raft) and transport. It has none of the others, and its edges are not declared."},
		{"log", "/$defs/log", "A mapping of these keys. A machine with a log is `blocking`: it waits for its disk on a goroutine of its own. Two machines keep no log in one folder."},
		{"raft", "/$defs/raft", "A mapping of these keys. With raft there is a log, whose sync is `always`. Which of its peers a program is, where its log stands and its certificates are given when it starts, too: " +
			"by the environment, and by a function for `New<Machine>`; see [generated code](generated-code.md). A processor of kind raft has these keys itself."},
		{"peers", "/$defs/peers", "A mapping from the names of the nodes to their addresses."},
		{"tls", "/$defs/tls", "A mapping of these keys, for files. Without it a node listens on this machine alone, unless `insecure: true` stands there."},
		{"restart", "/$defs/restart/anyOf/1", "A policy alone, such as `restart: on-failure`, or a mapping of these keys. A panic, an error with `then: stop` and a call that takes longer than `health` allows are failures; " +
			"Serve that returns nil, Ping that says `topo.Done` and exit code 0 are clean ends. An instance that failed and has no restart ends the topology; one of a group, and one whose restarts are used up, does not. " +
			"What is of no effect, such as a delay of restarts that there are not, is a finding."},
		{"health", "/$defs/health", "A mapping of these keys. A handler that waits for its next message is healthy."},
		{"on_error", "/$defs/on_error/anyOf/1", "What follows when a handler returns an error: `stop`, `skip` or `retry` alone, or a mapping of these keys. `delay`, `max_delay` and `jitter` are those of [restart](#restart), for the attempts at a message: they go with `then: retry`. " +
			"A processor that gets dead letters has one instance, and needs no edge; dead letters do not come back to where they began."},
		{"groups", "/$defs/group", "A mapping from names, of the form of those of processors, to these keys. An intensity has a period. A processor is in one group at most, and an external one in none. In a group the policy of restarts is by default `on-failure`; " +
			"with `never` an instance that has failed is gone, and the rest goes on. A `shutdown` goes with `one-for-all` and `rest-for-one`: with `one-for-one` no sibling is stopped."},
		{"edges", "/$defs/edge/anyOf/1", "A list. Each item is `FROM -> TO: MESSAGE` or `FROM -> TO:` with a mapping of these keys. The same from, to and message stand once; an edge from a processor to itself and rings are fine. " +
			"A message is the name of a type of this package, or a key of messages; from a machine of kind fsm, such as `ledger`, it is `LedgerApplied` or `LedgerLeadership`. No edge leads to an external processor."},
		{"route", "/$defs/route/anyOf/1", "Either `local` (the sender's instance mod the receiver's instances), `broadcast` (each instance), or a mapping with one of these keys. " +
			"An edge to several instances has a key or a route. `local` wants a sender with instances, which an external processor and a timer do not have. An Ask has one reply, so its edge goes to one instance."},
		{"range", "/$defs/route/anyOf/1/properties/range", "Instances by constants; all of them must exist."},
		{"Timers", "/$defs/timer", "An item of edges that is `every DURATION -> TO` or `every DURATION as NAME -> TO`, alone or with a mapping of these keys. Its message is `topo.Tick`, and each instance of the receiver gets it; a route `{range: …}` chooses some. " +
			"The handler is `ReceiveTick`; of a timer `as poll` it is `ReceiveTickPoll`. Timers of one processor have different names, or none. " +
			"A timer counts as an input: its receiver is not a source, so it has no `Serve`, and its sends return nothing. " +
			"Periods are at least " + everyMin.String() + "."},
		{"pool", "/properties/pool", "Defaults for run time: the environment goes before the file, and an option of New before both."},
		{"errors", "/properties/errors", "Only where this section stands is package errtop linked. [Keep errors](../howto/errors.md) says what is kept and how to read it."},
	} {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n| key | value | default | what |\n|---|---|---|---|\n", section.title, section.text)
		writeKeys(t, &out, definition(t, section.pointer))
	}
	fmt.Fprintf(&out, `
## Names

| name of | form | such as | but not |
|---|---|---|---|
| a topology, a timer | ASCII letters and digits, in parts that are joined by one `+"`-` or `_`"+`; a letter comes first | `+"`poll`, `health-check`, `range` | `2nd`, `a--b`, `a.b`"+` |
| a processor, a group | the same, but no keyword or predeclared name of Go, and not `+"`init` or `main`"+` | `+"`line-parser`, `line_parser`, `v2` | `2nd`, `a b`, `range`, `string`"+` |
| a message | ASCII letters, digits and `+"`_`"+`; a letter comes first; no word of Go, as above | `+"`Order`, `order_2` | `order-2`, `2nd`, `string`"+` |
| a package | the same form; no keyword, and not `+"`_test`"+` at its end | `+"`orders`, `main` | `my-orders`, `orders_test`"+` |

All have at most %d characters. In Go a name is in camel case: each `+"`-` and `_`"+` is taken out, and the first letter and each letter behind one is a capital, so that
`+"`line-parser` is `LineParser`, `line_parser` is `LineParser`, `http-api` is `HttpApi` and `lineParser` is `LineParser`"+`. No initialism is special. Two names of one kind must
not become the same in Go, nor differ only by case.

## Types

The value of a message, and a processor's `+"`type`"+`, is a Go type expression with import paths written out: `+"`Order`, `example.com/shop/model.Order`, `*example.com/shop/model.Page[string]`, `[]byte`, `[16]byte`, `map[string]time.Time`"+`.
A processor's is a name, perhaps with type arguments. Functions, channels, interfaces and structs are declared in Go and named.

## Durations

Durations are written as in Go: `+"`500ms`, `5s`, `1m30s`"+`. Where 0 has a meaning it may stand alone. Timeouts, periods of groups and `+"`health_check_interval`"+` are at least `+"`"+timeoutMin.String()+"`"+`.

## YAML

Keys that begin with `+"`x-`"+` are ignored anywhere, also as names of processors. Anchors, aliases and merge keys (`+"`<<`"+`) work; what a mapping says itself wins over what it merges, and of several merged ones the earlier.
Refused are unknown keys, keys that stand twice, keys that are no text, a second document, dates, numbers with a leading zero or an underscore or that are none, and tags of applications.

## Limits

| | at most |
|---|---|
| bytes of a file | %d |
| nesting | %d |
| keys and values | %d |
| keys and values that aliases repeat | %d |
| processors | %d |
| edges | %d |
| characters of a name | %d |
| bytes of a type expression or a field path | %d |
| findings that are reported | %d |
`, nameMax, bytesMax, depthMax, nodesMax, aliasNodesMax, processorsMax, edgesMax, nameMax, typeMax, findingsMax)
	out.Write(read(t, "testdata/dora.md"))
	golden.Compare(t, "../docs/reference/topology.md", []byte(out.String()))
}

// writeKeys writes a row for each property: the required first, then by name.
func writeKeys(t *testing.T, out *strings.Builder, schema map[string]any) {
	t.Helper()
	required := map[string]bool{}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		required[fmt.Sprint(name)] = true
	}
	properties, _ := schema["properties"].(map[string]any)
	names := slices.SortedFunc(maps.Keys(properties), func(a, b string) int {
		if required[a] != required[b] {
			if required[a] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		property := resolved(t, properties[name].(map[string]any))
		standard := ""
		switch value, ok := property["default"]; {
		case ok && fmt.Sprint(value) == "map[]":
			standard = "`{}`"
		case ok:
			standard = fmt.Sprintf("`%v`", value)
		case required[name]:
			standard = "required"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", name, valueOf(t, property), standard, about(t, property))
	}
}

// resolved is the property itself, or what it refers to where that is a value like any
// other with its own default.
func resolved(t *testing.T, property map[string]any) map[string]any {
	t.Helper()
	switch reference, _ := property["$ref"].(string); reference {
	case "#/$defs/arm", "#/$defs/input_timeout", "#/$defs/election_timeout", "#/$defs/heartbeat", "#/$defs/insecure":
		return definition(t, strings.TrimPrefix(reference, "#"))
	}
	return property
}

// about is the description of a property, or of what it refers to.
func about(t *testing.T, property map[string]any) string {
	t.Helper()
	if description, ok := property["description"].(string); ok {
		return description
	}
	return about(t, definition(t, strings.TrimPrefix(property["$ref"].(string), "#")))
}

// valueOf says in a few words what a property may be.
func valueOf(t *testing.T, property map[string]any) string {
	t.Helper()
	if reference, ok := property["$ref"].(string); ok {
		switch name := strings.TrimPrefix(reference, "#/$defs/"); name {
		case "durationOrZero":
			return "duration or 0"
		case "route":
			return "[route](#route)"
		case "restart":
			return "policy or [mapping](#restart)"
		case "health":
			return "[mapping](#health)"
		case "on_error":
			return "word or [mapping](#on_error)"
		case "memory", "message_limit":
			return "bytes, or such as `512MiB`"
		case "log", "raft", "peers", "tls":
			return "[mapping](#" + name + ")"
		case "group_name", "trust_domain":
			return "name"
		case "election_timeout", "heartbeat":
			return "duration"
		case "insecure":
			return "`true` or `false`"
		case "field":
			return "field path or method"
		default:
			return name
		}
	}
	if choices, ok := property["enum"].([]any); ok {
		words := make([]string, len(choices))
		for i, c := range choices {
			words[i] = fmt.Sprintf("`%v`", c)
		}
		return strings.Join(words, ", ")
	}
	if constant, ok := property["const"]; ok {
		return fmt.Sprintf("`%v`", constant)
	}
	word := strings.NewReplacer("a ", "", "true or false", "`true` or `false`").Replace(typeWords[fmt.Sprint(property["type"])])
	if low, ok := property["minimum"].(float64); ok {
		word += fmt.Sprintf(", %.0f to %.0f", low, property["maximum"])
	}
	return word
}
