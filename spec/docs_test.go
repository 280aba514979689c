package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/golden"
	"github.com/topogen/topogen/spec/finding"
)

// These tests write pages: go test ./spec -run Reference -update. The sections of the catalogue of
// findings are written by hand. Its index in docs and the reports below the examples are generated from them. The page of the file format is generated from the schema.

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

This page links to the findings of ` + "`topogen build` and `topogen check`" + `: the reason of each code, an example that causes it, and the corrected one. ` + "`topogen explain`" + ` lists all codes, and ` + "`topogen explain CODE`" + ` prints one. A code never changes its meaning. There is no TG410.
`)
	pages := make(map[string]*strings.Builder)
	for _, h := range hundreds {
		pages[h.prefix] = new(strings.Builder)
		fmt.Fprintf(pages[h.prefix], "# Findings %sxx: %s\n\n%s\n", h.prefix, h.title, h.about)
		fmt.Fprintf(&index, "\n## %sxx: %s\n\n", h.prefix, h.title)
		for _, code := range finding.Codes() {
			if !strings.HasPrefix(code, h.prefix) {
				continue
			}
			e, _ := finding.Explain(code)
			anchor := strings.ToLower(code)
			fmt.Fprintf(&index, "<a id=\"%s\"></a>[%s](../../spec/finding/catalogue/%sxx.md#%[1]s)\n", anchor, code, strings.ToLower(h.prefix))
			writeSection(pages[h.prefix], e)
		}
	}
	for _, code := range finding.Codes() {
		if pages[code[:len("TG1")]] == nil {
			t.Errorf("%s has no page", code)
		}
	}
	golden.Compare(t, "../docs/reference/findings.md", []byte(index.String()))
	for _, h := range hundreds {
		golden.Compare(t, "finding/catalogue/"+strings.ToLower(h.prefix)+"xx.md", []byte(pages[h.prefix].String()))
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

This page is for people who write a topology file: every key with its type, limits, default and meaning. The [how-tos](../README.md#how-to) have examples.

The lists of keys are generated from ` + "`schemas/topology.schema.json`" + `. [Editors](../howto/generate.md#editors) complete and check a file with this schema if it begins with:

` + "```yaml\n# yaml-language-server: $schema=./topology.schema.json\n```\n")
	for _, s := range sections {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", s.title, s.text)
		if schema := definition(t, s.pointer); schema["properties"] != nil {
			if strings.HasPrefix(s.text[strings.LastIndex(s.text, "\n")+1:], "- ") {
				out.WriteString("\nKeys:\n")
			}
			out.WriteString("\n")
			writeKeys(t, &out, s.title, schema)
		}
	}
	fmt.Fprintf(&out, formsAndLimits, nameMax, timeoutMin, bytesMax, depthMax, nodesMax, aliasNodesMax, processorsMax, edgesMax, nameMax, typeMax, findingsMax)
	golden.Compare(t, "../docs/reference/topology.md", []byte(out.String()))
}

// sections are the parts of a topology file: pointer leads to the part of the schema whose
// properties are listed below the text.
var sections = []struct{ title, pointer, text string }{
	{"The file", "", "The default of a boolean is false, unless its item names another one."},
	{"messages", "/properties/messages", "A mapping from [names](#names) of messages to [types](#types), for types that are in another package than the generated code or have no name, such as `[]byte`. Two messages may have the same type."},
	{"processors", "/$defs/processor", "A mapping from [names](#names) to processors. A processor without options is `{}`. It is a Go type with handlers, [external](../howto/ask.md), a [state machine](../howto/state-machines.md) (`kind: fsm` with `state` and `update`), or only the consensus of a [raft group](raft.md) (`kind: raft` with `controller`, `peers` and `log`). topogen reports keys that the kind does not have."},
	{"log", "/$defs/log", "Each log has its own folder. A processor with a log has its own goroutine, in which it waits for the disk."},
	{"raft", "/$defs/raft", "A processor of kind raft has these keys among its own. An [environment variable](raft.md#environment), or a function that is passed to [`New<Processor>`](generated-code.md#state-machines), sets the name of the node when the program starts, and may set another folder and other certificates."},
	{"tls", "/$defs/tls", "Without `tls`, a node listens only on the loopback interface, unless `insecure` is true. [Names in certificates](nodes.md#identity). Without `raft.tls` and `raft.insecure`, a group uses [the certificate of the node](nodes.md#one-certificate-for-a-node), which `cluster.tls` names."},
	{"restart", "/$defs/restart/anyOf/1", `A policy, such as ` + "`" + `restart: on-failure` + "`" + `, or a mapping. A failure is a panic, an error with ` + "`" + `then: stop` + "`" + `, a call that takes longer than ` + "`" + `health` + "`" + ` allows, or the end of the process of the instance. After [any other end](glossary.md#running) an instance restarts only with ` + "`" + `always` + "`" + `.

| a failed instance that | effect |
|---|---|
| may restart | is restarted after its delay |
| has the policy ` + "`" + `never` + "`" + `, outside of a group; or is in a group that has no restarts left | ends the topology: ` + "`" + `Run` + "`" + ` returns the error |
| has the policy ` + "`" + `never` + "`" + `, in a group; or has no restarts left | is given up: the others continue, and ` + "`" + `Run` + "`" + ` returns ` + "`" + `pool.ErrGaveUp` + "`" + ` at the end |

topogen reports an option that has no effect, such as a delay without restarts.`},
	{"health", "/$defs/health", "An instance that waits for its next message is healthy."},
	{"on_error", "/$defs/on_error/anyOf/1", "A word or a mapping. `delay`, `max_delay` and `jitter` need `then: retry`. The processor that receives dead letters has one instance and needs no edge. Dead letters must not form a cycle."},
	{"groups", "/$defs/group", "A mapping from [names](#names) to groups of processors with a Go type. A processor is in at most one group. `intensity` and `period` are set together. `shutdown` needs `one-for-all` or `rest-for-one`."},
	{"edges", "/$defs/edge/anyOf/1", `A list of ` + "`" + `FROM -> TO: MESSAGE` + "`" + `, or ` + "`" + `FROM -> TO:` + "`" + ` with a mapping of the keys below.

- Edges from a processor of kind fsm, such as ` + "`" + `ledger` + "`" + `, have the message ` + "`" + `LedgerApplied` + "`" + ` or ` + "`" + `LedgerLeadership` + "`" + `.
- Two edges must not have the same sender, receiver and message.
- An edge may lead to its own sender, and edges may form cycles. No edge leads to an external processor.`},
	{"route", "/$defs/route/anyOf/1", `` + "`" + `local` + "`" + `, ` + "`" + `broadcast` + "`" + `, or a mapping with one of the keys below. [What each selects](../howto/keys.md).

- ` + "`" + `id` + "`" + ` and ` + "`" + `node` + "`" + ` count a message for an unknown instance or node as dropped. A send that returns an error then returns ` + "`" + `topo.ErrNoInstance` + "`" + `, except for ` + "`" + `node` + "`" + ` in ` + "`" + `Ping` + "`" + ` with ` + "`" + `isolation: process` + "`" + `, whose process does not know the nodes.
- ` + "`" + `node` + "`" + ` selects on that node the instance that ` + "`" + `local` + "`" + ` selects. So the messages of an instance to one node keep their order. It needs a receiver with ` + "`" + `placement: every-node` + "`" + `. In one process without nodes it is ` + "`" + `local` + "`" + `, whatever the name.
- ` + "`" + `caller` + "`" + ` is reserved for a later version.
- An edge with a reply from an external processor leads to one instance, or in a cluster to several if the reply has [` + "`" + `Aggregate` + "`" + `](generated-code.md#on-several-nodes). A processor gets the reply of each instance as a message.`},
	{"Timers", "/$defs/timer", `A timer is an item of ` + "`" + `edges` + "`" + `: ` + "`" + `every DURATION -> TO` + "`" + ` or ` + "`" + `every DURATION as NAME -> TO` + "`" + `, alone or with a mapping of the keys below. [How to](../howto/timers.md).

- The timers of one processor have different names. One of them may have no name.
- The period is at least ` + everyMin.String() + `.`},
	{"cluster", "/properties/cluster", `[How to](../howto/cluster.md). In one process without the name of a node this section has no effect.

- ` + "`" + `instances` + "`" + ` is the number in the whole cluster, and with ` + "`" + `placement: every-node` + "`" + ` the number on each node.
- A processor without inputs exists once in the cluster, unless its placement is ` + "`" + `every-node` + "`" + `.
- An external processor exists on every node.
- Each node makes the ticks of its own instances.`},
	{"nodes", "/$defs/nodes", "A mapping from the names of nodes to their addresses, such as `n1: \"10.0.0.1:7400\"`. `cluster.nodes` has at most " + strconv.Itoa(nodesOfCluster) + " entries, with `addresses: raft` at most " + strconv.Itoa(nodesOfRaft) + ", and more nodes can join. `raft.peers` has at most 9. A name has ASCII letters and digits, in parts that are joined by one `.`, `_` or `-`. An address is a host and a port, different for each node."},
	{"etcd", "/$defs/etcd", "`addresses: etcd` needs this section."},
	{"etcd_tls", "/$defs/etcd_tls", "`cert` and `key` need each other, and none is required. The certificates of `cluster.tls` are not used for etcd."},
	{"membership", "/$defs/membership", "These keys override [the profile](nodes.md#failure-detection). The times are at most 1h."},
	{"retry", "/$defs/retry", "`min` is at most `max`, and `max` at most `timeout`. Each attempt uses the current address of the node."},
	{"placement", "/$defs/placement/anyOf/1", `A word or a mapping. It needs the section ` + "`" + `cluster` + "`" + `.

- ` + "`" + `spread` + "`" + ` places processors with the same number of instances together if an edge with ` + "`" + `route: local` + "`" + ` joins them: instance 3 of both is on the same node.
- An edge to a processor with ` + "`" + `every-node` + "`" + ` has the route ` + "`" + `local` + "`" + `, which stays on the node, ` + "`" + `broadcast` + "`" + `, which leads to all instances of all nodes, or ` + "`" + `node` + "`" + `.
- Dead letters and edges of a state machine stay on their node, and so do groups with ` + "`" + `one-for-all` + "`" + ` or ` + "`" + `rest-for-one` + "`" + `. topogen reports placements that do not allow it. Each node counts the restarts of a group by itself.
- A replicated state machine or a processor of kind raft runs on every node: its peers are the nodes of the cluster, and its controller has the placement ` + "`" + `every-node` + "`" + `. Another state machine needs a controller with ` + "`" + `{node: NAME}` + "`" + ` and runs there.
- A receiver of durable edges is on every node, also without this key, because any node continues an execution.
- Messages that can lead to another node are [encoded](wire.md). An edge stays on its node if it leads to ` + "`" + `every-node` + "`" + ` with ` + "`" + `route: local` + "`" + `, if both ends have the same ` + "`" + `{node: NAME}` + "`" + `, or if it has ` + "`" + `route: local` + "`" + ` and its ends are placed together.`},
	{"durable", "/properties/durable", `[How to](../howto/durable.md), and [what a fault does](delivery.md#durable-edges). In a [cluster](../howto/durable.md#in-a-cluster), ` + "`" + `store` + "`" + ` is a URL or ` + "`" + `{raft: NAME}` + "`" + `.

- An edge with ` + "`" + `durable: true` + "`" + ` leads from an external processor or one with ` + "`" + `blocking: true` + "`" + ` to a processor with ` + "`" + `blocking: true` + "`" + `. Its sender sends the message along no other edge. A timer cannot be durable.
- It can have ` + "`" + `key` + "`" + `, ` + "`" + `route: {id: FIELD}` + "`" + `, ` + "`" + `reply` + "`" + `, ` + "`" + `timeout` + "`" + `, ` + "`" + `id` + "`" + ` and ` + "`" + `limit` + "`" + `.
- Messages and replies are kept as JSON. A type that JSON does not keep unchanged is a finding.
- The promise of a message has the id ` + "`" + `TOPOLOGY:FROM.TO.MESSAGE:ID` + "`" + `, with at most 2,000 bytes. [Any other text](durable.md#ids) is an id.
- ` + "`" + `on_error` + "`" + ` of the receiver has ` + "`" + `then: retry` + "`" + ` with ` + "`" + `max_attempts` + "`" + `, ` + "`" + `delay` + "`" + `, ` + "`" + `max_delay` + "`" + `, ` + "`" + `jitter` + "`" + `, or ` + "`" + `then: skip` + "`" + `. After the last attempt the promise is rejected with the error, the message goes to ` + "`" + `dead_letter` + "`" + `, and the topology continues.
- ` + "`" + `health` + "`" + ` does not limit the handlers. When the ` + "`" + `timeout` + "`" + ` of the edge passes, the context of the handler ends. A handler that does not heed its context keeps its instance.`},
	{"limit", "/$defs/limit", "A limit applies to the executions of one edge in one process. Executions that wait for their limit keep no instance, and those with different values of `per` take turns."},
	{"pool", "/properties/pool", "An [environment variable](runtime.md#pool) overrides the file, and an option of `New` overrides both."},
	{"errors", "/properties/errors", "[Which errors are kept, and how to read the file](../howto/errors.md)."},
}

// elsewhere are the keys of a section whose items are in the list of another section.
var elsewhere = map[string]struct {
	keys    []string
	section string
}{
	"processors": {[]string{"election_timeout", "group", "heartbeat", "insecure", "peers", "tls", "trust_domain"}, "raft"},
	"etcd_tls":   {[]string{"ca", "cert", "key"}, "tls"},
	"cluster":    {[]string{"insecure", "tls", "trust_domain"}, "raft"},
	"on_error":   {[]string{"delay", "jitter", "max_delay"}, "restart"},
	"Timers":     {[]string{"arm", "input_timeout"}, "edges"},
}

const formsAndLimits = `
## Names

| name of | form | valid | not valid |
|---|---|---|---|
| a topology, a timer | ASCII letters and digits, in parts that are joined by one ` + "`-` or `_`" + `, a letter first | ` + "`poll`, `health-check`, `range` | `2nd`, `a--b`, `a.b`" + ` |
| a processor, a group | the same, but not a keyword or predeclared name of Go, ` + "`init` or `main` | `line-parser`, `line_parser`, `v2` | `2nd`, `a b`, `range`, `string`" + ` |
| a message | ASCII letters, digits and ` + "`_`" + `, a letter first; not a keyword or predeclared name of Go, ` + "`init` or `main` | `Order`, `order_2` | `order-2`, `2nd`, `string`" + ` |
| a package | ASCII letters, digits and ` + "`_`" + `, a letter first; not a keyword of Go, not ` + "`documentation`, and without `_test` at its end | `orders`, `main` | `my-orders`, `orders_test`" + ` |

A name has at most %d characters. In Go it is in camel case, without special initialisms: ` + "`line-parser` is `LineParser`, `line_parser` is `LineParser`, `http-api` is `HttpApi`, and `lineParser` is `LineParser`" + `. The Go
forms of two names of one kind must differ, and by more than case.

## Types

A type is a Go type expression with complete import paths: ` + "`Order`, `example.com/shop/model.Order`, `*example.com/shop/model.Page[string]`, `[]byte`, `[16]byte`, `map[string]time.Time`" + `.
The type of a processor is a name, optionally with type arguments.

A "part" of a message is a field, such as ` + "`Account`, or a method without arguments, also inside another field: `Customer.Account`" + `. [Its type](../howto/keys.md).

## Durations

A duration is written as in Go: ` + "`500ms`, `5s`, `1m30s`. \"or 0\" means also the number 0. At least `%v`: the times of `health`, `retry` and `membership`, `period`, `shutdown`, `input_timeout`, `health_check_interval`, `dump_every`, and `interval` of a log" + `. Other durations are above 0, or as their item says.

## YAML

Keys that begin with ` + "`x-`" + ` are ignored everywhere, also as names of processors. Anchors, aliases and merge keys (` + "`<<`" + `) work. A key of the mapping itself overrides a merged key, and the
first of several merged mappings overrides the later ones. topogen reports unknown and duplicate keys, keys that are not strings, a second document, dates, tags of applications, such as ` + "`!secret`" + `,
and numbers that are infinite or not a number, that have a leading zero, or that contain ` + "`_`" + `.

## Limits

A file has at most %d bytes, %d levels of nesting, %d keys and values, %d more that aliases repeat, %d processors and %d edges. A name has at most %d characters, a string without a limit here 1000, and a type expression or a field path %d. topogen reports at most %d findings.
`

// stringMax is the limit of strings whose item names no limit.
const stringMax = 1000

// writeKeys writes an item for each property: the required first, then by name, and then those of
// another section.
func writeKeys(t *testing.T, out *strings.Builder, title string, schema map[string]any) {
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
	other := elsewhere[title]
	for _, name := range names {
		if slices.Contains(other.keys, name) {
			continue
		}
		property := resolved(t, properties[name].(map[string]any))
		value, standard := valueOf(t, name, property), fmt.Sprintf("`%v`", property["default"])
		switch {
		case required[name]:
			value += ", required"
		case property["default"] == nil || fmt.Sprint(property["default"]) == "map[]" || property["default"] == false:
		case strings.Contains(value, standard):
			value = strings.Replace(value, standard, standard+" (default)", 1)
		default:
			value += ", default " + standard
		}
		fmt.Fprintf(out, "- `%s` (%s): %s\n", name, value, about(t, property))
	}
	if len(other.keys) > 0 {
		fmt.Fprintf(out, "- `%s`: as in [%s](#%[2]s)\n", strings.Join(other.keys, "`, `"), other.section)
	}
}

// resolved returns the property, or the definition that it refers to if that has a default of
// its own.
func resolved(t *testing.T, property map[string]any) map[string]any {
	t.Helper()
	switch reference, _ := property["$ref"].(string); reference {
	case "#/$defs/arm", "#/$defs/input_timeout", "#/$defs/election_timeout", "#/$defs/heartbeat", "#/$defs/insecure", "#/$defs/placement":
		return definition(t, strings.TrimPrefix(reference, "#"))
	}
	return property
}

// about returns the description of a property or of the definition that it refers to.
func about(t *testing.T, property map[string]any) string {
	t.Helper()
	if description, ok := property["description"].(string); ok {
		return description
	}
	return about(t, definition(t, strings.TrimPrefix(property["$ref"].(string), "#")))
}

// valueOf returns the type of a property and its limits.
func valueOf(t *testing.T, name string, property map[string]any) string {
	t.Helper()
	if reference, ok := property["$ref"].(string); ok {
		switch definition := strings.TrimPrefix(reference, "#/$defs/"); definition {
		case "durationOrZero":
			return "[duration](#durations) or 0"
		case "timer_route":
			return "`broadcast` or `{range: …}`"
		case "update_route":
			return "`local` or `{id: FIELD}`"
		case "route":
			return "`local`, `broadcast`, `caller` or [mapping](#route)"
		case "restart":
			return "`never`, `on-failure`, `always` or [mapping](#restart)"
		case "health":
			return "[mapping](#health)"
		case "on_error":
			return "`stop`, `skip`, `retry` or [mapping](#on_error)"
		case "memory", "message_limit":
			return "bytes, KiB, MiB or GiB"
		case "store":
			return "path of a folder, URL of a server, or `{raft: NAME}`"
		case "checkpoint":
			return "mapping"
		case "peers":
			return "[mapping](#nodes)"
		case "log", "raft", "tls", "nodes", "etcd", "etcd_tls", "membership", "retry", "limit":
			return "[mapping](#" + definition + ")"
		case "duration":
			return "[duration](#durations)"
		case "name", "message", "group_name":
			return "[name](#names)"
		case "type":
			return "[type](#types)"
		case "field":
			return "[part](#types)"
		case "trust_domain":
			return "string of lower-case ASCII letters, digits, `.`, `_` and `-`, at most 255 characters"
		default:
			t.Fatalf("%s has the type %s", name, definition)
		}
	}
	if name == "rate" {
		return "number, or a rate such as `100/s`"
	}
	if name == "placement" { // its definition has the default
		return "`spread`, `every-node` or [mapping](#placement)"
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
	word := strings.NewReplacer("an ", "", "a ", "", "true or false", "boolean").Replace(typeWords[fmt.Sprint(property["type"])])
	switch word + " " + name { // a group has a list called processors
	case "list edges", "mapping messages", "mapping processors", "mapping groups", "mapping pool", "mapping errors", "mapping cluster", "mapping durable":
		return "[" + word + "](#" + name + ")"
	}
	if name == "range" {
		return "`{offset: N, count: N}`"
	}
	if low, ok := property["minimum"].(float64); ok {
		word += fmt.Sprintf(", %.0f to %.0f", low, property["maximum"])
	}
	if length, ok := property["maxLength"].(float64); ok && length != stringMax {
		word += fmt.Sprintf(", at most %.0f characters", length)
	}
	return word
}
