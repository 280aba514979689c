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

This page lists the findings of ` + "`topogen build` and `topogen check`" + `. ` + "`topogen explain CODE`" + ` prints the rule of a code, its reason, an example that causes it, and
the corrected example. A code never changes its meaning. There is no TG410.
`)
	pages := make(map[string]*strings.Builder)
	for _, h := range hundreds {
		pages[h.prefix] = new(strings.Builder)
		fmt.Fprintf(pages[h.prefix], "# Findings %sxx: %s\n\n%s\n", h.prefix, h.title, h.about)
		fmt.Fprintf(&index, "\n## %sxx: %s\n\n%s\n\n| code | finding |\n|---|---|\n", h.prefix, h.title, h.about)
		for _, code := range finding.Codes() {
			if !strings.HasPrefix(code, h.prefix) {
				continue
			}
			e, _ := finding.Explain(code)
			title := e.Title
			if code == finding.OutlivesCall {
				title += "; a warning in `topogen build`"
			}
			fmt.Fprintf(&index, "| <a id=\"%s\"></a>%s | %s |\n", strings.ToLower(code), code, title)
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

The tables are generated from ` + "`schemas/topology.schema.json`" + `. Editors complete and check a file with this schema if the file begins with:

` + "```yaml\n# yaml-language-server: $schema=./topology.schema.json\n```\n")
	for _, s := range sections {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", s.title, s.text)
		if schema := definition(t, s.pointer); schema["properties"] != nil {
			out.WriteString("\n| key | type and limits | default | meaning |\n|---|---|---|---|\n")
			writeKeys(t, &out, schema)
		}
	}
	fmt.Fprintf(&out, formsAndLimits, nameMax, timeoutMin, bytesMax, depthMax, nodesMax, aliasNodesMax, processorsMax, edgesMax, nameMax, typeMax, findingsMax)
	golden.Compare(t, "../docs/reference/topology.md", []byte(out.String()))
}

// sections are the parts of a topology file: pointer leads to the part of the schema whose
// properties are listed below the text.
var sections = []struct{ title, pointer, text string }{
	{"The file", "", "The keys of the file may be in any order."},
	{"messages", "/properties/messages", "A mapping from [names](#names) of messages to [types](#types). A message needs an entry if its type is in another package than the generated code, or has no name, such as `[]byte`. Two messages may have the same type."},
	{"processors", "/$defs/processor", `A mapping from [names](#names) to processors. A processor without options is written ` + "`{}`" + `. There are four kinds of processors, with different keys:

| processor | required keys | optional keys |
|---|---|---|
| a Go type with a handler for each message that it receives | (none) | ` + "`type`, `new`, `with`, `instances`, `blocking`, `restart`, `health`, `isolation`, `memory`, `on_error`, `placement`" + ` |
| [external](../howto/ask.md): code outside the topology that sends messages | ` + "`external: true`" + ` | (none) |
| [state machine](../howto/state-machines.md): a state that changes only by updates | ` + "`kind: fsm`, `state`, `update`" + ` | ` + "`result`, `revert`, `instances`, `key`, `route`, `controller`, `log`, `raft`" + ` |
| [raft group](raft.md): only the consensus of several nodes | ` + "`kind: raft`, `controller`, `peers`, `log`" + ` | ` + "`transport`, and the keys of [raft](#raft) except `forward`" + ` |

The ` + "`controller`" + ` of a state machine or raft group is a processor with a Go type. It sends requests and receives the answers. The edges between the two are not declared.`},
	{"log", "/$defs/log", "Each log must have its own folder. A processor with a log has its own goroutine, in which it waits for the disk."},
	{"raft", "/$defs/raft", "A processor of kind fsm with `raft` needs `log`, and the `sync` of the log must be `always`. A processor of kind raft has the keys of this table among its own keys.\n\nAn [environment variable](raft.md#environment), or a function that is passed to `New<Processor>`, sets the name of the node when the program starts. Both can also set another folder for the log, and other certificates. See [generated code](generated-code.md#state-machines)."},
	{"peers", "/$defs/peers", "A mapping from the names of the nodes to their addresses, such as `n1: \"10.0.0.1:7101\"`. A name has ASCII letters and digits, in parts that are joined by one `.`, `_` or `-`. An address is a host and a port. Each node has a different address."},
	{"tls", "/$defs/tls", "Without tls, a node listens only on the loopback interface of its host, unless `insecure` is true."},
	{"restart", "/$defs/restart/anyOf/1", "A policy, such as `restart: on-failure`, or a mapping with the keys below.\n\n- A failure is a panic, an error with `then: stop`, a call that takes longer than `health` allows, or the end of the process of the instance.\n- A clean end is a `Serve` that returns nil or a `Ping` that returns `topo.Done`. If the process of a source exits between two calls with code 0, this is a clean end too, unless the source has `Finish` or holds work.\n\n| the failed instance | effect |\n|---|---|\n| may restart | It is restarted after its delay. |\n| has the policy `never`, and is not in a group | The topology ends, and `Run` returns the error. |\n| has the policy `never`, and is in a group | It is given up. The other instances continue, and `Run` returns `pool.ErrGaveUp` when they have finished. |\n| has no restarts left | It is given up, in the same way. |\n| is in a group that has no restarts left | The topology ends, and `Run` returns the error. |\n\ntopogen reports an option that has no effect, such as a delay without restarts."},
	{"health", "/$defs/health", "An instance that waits for its next message is healthy."},
	{"on_error", "/$defs/on_error/anyOf/1", "`on_error` selects the reaction to an error of a handler: `stop`, `skip`, `retry`, or a mapping with the keys below. `delay`, `max_delay` and `jitter` set the time between two attempts to handle a message, and need `then: retry`.\n\nA dead letter is a message that could not be handled. The processor that receives dead letters must have one instance and does not need an edge. Dead letters must not form a cycle."},
	{"groups", "/$defs/group", "A mapping from [names](#names) to groups. A processor is in at most one group. External processors and processors of kind fsm or raft cannot be in a group.\n\n- Set both `intensity` and `period`, or neither: their defaults apply only together.\n" +
		"- The default policy of `restart` in a group is `on-failure`. With `never`, a failed instance is not restarted, and the others continue.\n" +
		"- `shutdown` needs `one-for-all` or `rest-for-one`, because with `one-for-one` no other member is stopped."},
	{"edges", "/$defs/edge/anyOf/1", "A list. Each item is `FROM -> TO: MESSAGE`, or `FROM -> TO:` with a mapping of the keys below.\n\n- The message is the name of a type of the generated package or an entry of `messages`. From a processor of kind fsm, such as `ledger`, it is `LedgerApplied` or `LedgerLeadership`.\n- Two edges must not have the same sender, receiver and message.\n- An edge from a processor to itself is valid, and so are cycles.\n- An edge must not lead to an external processor."},
	{"route", "/$defs/route/anyOf/1", "`local`, `broadcast`, or a mapping with one of the keys below. An edge to several instances needs a `key` or a `route`.\n\n- `local` selects the instance with the index of the sender's instance, modulo the number of instances of the receiver. An external processor has no instances: its edges can have `local` or `node` only to a processor with `placement: every-node` and one instance.\n- `broadcast` selects every instance.\n- `node` selects an instance on the node with that name: there the index is that of `local`, so all messages of an instance that name one node go to the same instance, in order. Only an edge to a processor with `placement: every-node` can have it. A message with the name of an unknown node counts as dropped, as with `id`, and a send that returns an error returns `topo.ErrNoInstance`. The exception is `Ping` with `isolation: process`: its process does not know the nodes, so the message is only counted. A program that runs the whole topology in one process has no nodes: there `node` is `local`, whatever the name.\n- `caller` is reserved for a later version.\n- A timer can have only `broadcast` or `range`. A processor of kind fsm can have only `local` or `id`.\n- An edge with a reply from an external processor must lead to one instance, because `Ask` returns one reply. In a cluster it may lead to several, if the type of the reply has a method `Aggregate(Reply) Reply` that joins two replies: first those of the node itself, then those of the other nodes by name, and on each node by number. If some instances have not answered, `Ask` returns the joined replies of the others with a `*topo.PartialError`, which says how many of how many have answered. A processor that sends a request to several instances gets the reply of each as a message."},
	{"range", "/$defs/route/anyOf/1/properties/range", "All instances of the range must exist."},
	{"Timers", "/$defs/timer", "A timer is an item of `edges` in the form `every DURATION -> TO` or `every DURATION as NAME -> TO`, alone or with a mapping of the keys below.\n\n- The message of a timer is `topo.Tick`. Each instance of the receiver gets it, or only some instances with `route: {range: …}`.\n- The handler is `ReceiveTick`. For a timer `as poll` it is `ReceiveTickPoll`.\n- A timer may have no name. The timers of one processor must have different names.\n- The receiver of a timer has an input, so it is not a source: it cannot have `Serve`, and its send methods return nothing.\n- The period is at least " + everyMin.String() + "."},
	{"cluster", "/properties/cluster", `The nodes on which the topology runs. The same program is started on each node with the name of the node (` + "`TOPOGEN_NODE`" + `). Without a name, it runs the whole topology in one process, and this section has no effect.

- ` + "`instances`" + ` of a processor is its number in the whole cluster, and the index of an instance is the same as in one process. With ` + "`placement: every-node`" + ` it is the number on each node.
- A processor without inputs, such as a source with ` + "`Serve`" + `, exists once in the cluster, unless its placement is ` + "`every-node`" + `.
- An external processor exists on every node: code on each node can send its messages.
- Each node makes the ticks of the instances that run on it.
- Without ` + "`tls`" + `, a node listens only on the loopback interface of its host, unless ` + "`insecure`" + ` is true.`},
	{"nodes", "/$defs/nodes", "A mapping from the names of nodes to their addresses, such as `n1: \"10.0.0.1:7400\"`, with at most " + strconv.Itoa(nodesOfCluster) + " entries, and with `addresses: raft` at most " + strconv.Itoa(nodesOfRaft) + ". More nodes can join. A name has ASCII letters and digits, in parts that are joined by one `.`, `_` or `-`. An address is a host and a port. Each node has a different address. The order of the entries has no effect."},
	{"etcd", "/$defs/etcd", "An endpoint is a URL with `http` or `https` and a host with a port. `addresses: etcd` needs this section."},
	{"etcd_tls", "/$defs/etcd_tls", "The certificates of nodes (`cluster.tls`) are not used for etcd."},
	{"membership", "/$defs/membership", "A key of this mapping overrides the value of the profile."},
	{"retry", "/$defs/retry", "`min` is at most `max`, and `max` is at most `timeout`. Each attempt to connect uses the address that the node has then."},
	{"placement", "/$defs/placement/anyOf/1", `A word, or a mapping with the keys below. It needs the section ` + "`cluster`" + `.

- Processors with placement ` + "`spread`" + ` and the same number of instances are placed together if an edge with ` + "`route: local`" + ` joins them: instance 3 of both is always on the same node.
- An edge to a processor with ` + "`every-node`" + ` has the route ` + "`local`" + `, which stays on the node of the sender, ` + "`broadcast`" + `, which leads to all instances of all nodes, or ` + "`node`" + `.
- Dead letters never leave their node. The processor that receives them has the placement ` + "`every-node`" + `, or is on the same node as the processor whose messages they are.
- The members of a restart group with ` + "`one-for-all` or `rest-for-one`" + ` all have the placement ` + "`every-node`" + `, or are all on one node. Each node counts the restarts of a group by itself.
- A replicated state machine or a processor of kind raft runs on every node: its peers are the nodes of the cluster, and its controller has the placement ` + "`every-node`" + `. Another state machine needs a controller with ` + "`{node: NAME}`" + ` and runs on that node. All edges between a state machine and other processors stay on their node.
- Messages of an edge that can lead to another node are [encoded](wire.md). An edge stays on its node if it leads to ` + "`every-node` with `route: local`" + `, if both ends have the same ` + "`{node: NAME}`" + `, or if it has ` + "`route: local`" + ` and its ends are placed together. All other edges can lead to another node.`},
	{"checkpoint", "/$defs/checkpoint", "Reserved for a later version: topogen reports it."},
	{"durable", "/properties/durable", `The store of durable edges. [How to](../howto/durable.md), and [what a fault does](delivery.md#durable-edges).

- An edge with ` + "`durable: true`" + ` leads from an external processor or a processor with ` + "`blocking: true`" + ` to a processor with ` + "`blocking: true`" + `. Its sender sends the message along no other edge.
- It can have ` + "`key`, `route: {id: FIELD}`, `reply`, `timeout`, `id` and `limit`" + `. It cannot have ` + "`capacity`, `full`, `shared`, `delivery` and `input_timeout`" + `, because its messages wait on the disk. A timer cannot be durable.
- Messages and replies are kept as JSON. A type that JSON does not keep unchanged is a finding.
- The promise of a message has the id ` + "`TOPOLOGY:FROM.TO.MESSAGE:ID`" + `. It has at most 2,000 bytes. [Any other text](durable.md#ids) is an id.
- ` + "`on_error`" + ` of the receiver has ` + "`then: retry`" + ` with ` + "`max_attempts`, `delay`, `max_delay`, `jitter`" + `, or ` + "`then: skip`" + `. After the last attempt the promise is rejected with the error, the message goes to ` + "`dead_letter`" + `, and the topology continues.
- ` + "`health`" + ` does not limit the handlers of durable edges. When the ` + "`timeout`" + ` of an edge passes, the context of the handler ends. A handler that does not heed its context keeps its instance.
- A file must not have both sections ` + "`durable` and `cluster`" + ` in this version.`},
	{"limit", "/$defs/limit", "A limit applies to the executions of one edge in one process. Executions that wait for their limit keep no instance, and those of different values of `per` take turns."},
	{"pool", "/properties/pool", "These keys are defaults. An environment variable overrides the file, and an option of `New` overrides both."},
	{"errors", "/properties/errors", "[Keep errors](../howto/errors.md) describes which errors are kept and how to read the file. Package [errtop](runtime.md#errtop) keeps them. It is part of the program only if the file has this section."},
}

const formsAndLimits = `
## Names

| name of | form | valid | not valid |
|---|---|---|---|
| a topology, a timer | ASCII letters and digits, in parts that are joined by one ` + "`-` or `_`" + `. The first character is a letter. | ` + "`poll`, `health-check`, `range` | `2nd`, `a--b`, `a.b`" + ` |
| a processor, a group | The same form. Not a keyword or predeclared name of Go, ` + "`init` or `main`. | `line-parser`, `line_parser`, `v2` | `2nd`, `a b`, `range`, `string`" + ` |
| a message | ASCII letters, digits and ` + "`_`" + `. The first character is a letter. Not a keyword or predeclared name of Go, ` + "`init` or `main`. | `Order`, `order_2` | `order-2`, `2nd`, `string`" + ` |
| a package | ASCII letters, digits and ` + "`_`" + `. The first character is a letter. Not a keyword of Go, not ` + "`documentation`, and without `_test` at its end. | `orders`, `main` | `my-orders`, `orders_test`" + ` |

A name has at most %d characters. The Go form of a name is in camel case: each ` + "`-` and `_`" + ` is removed, and the first letter and each letter after a removed character is a capital.
` + "`line-parser` is `LineParser`, `line_parser` is `LineParser`, `http-api` is `HttpApi`, and `lineParser` is `LineParser`" + `. Initialisms are not special. The Go forms of two names
of one kind must differ, and by more than case.

## Types

A type is a Go type expression with complete import paths: ` + "`Order`, `example.com/shop/model.Order`, `*example.com/shop/model.Page[string]`, `[]byte`, `[16]byte`, `map[string]time.Time`" + `.
The type of a processor must be a name, optionally with type arguments. A function, channel, interface or struct type must be declared in Go and written by its name.

## Durations

A duration is written as in Go: ` + "`500ms`, `5s`, `1m30s`" + `. A key of the type "duration or 0" also accepts the number 0. Timeouts, periods of groups and ` + "`health_check_interval`" + ` must be at least ` + "`%v`" + `.

## YAML

Keys that begin with ` + "`x-`" + ` are ignored everywhere, also as names of processors. Anchors, aliases and merge keys (` + "`<<`" + `) work. A key of the mapping itself overrides a merged key, and the
first of several merged mappings overrides the later ones. topogen reports these as errors:

- unknown keys, duplicate keys and keys that are not strings
- a second document
- dates
- numbers that are infinite or not a number, that have a leading zero, or that contain ` + "`_`" + `
- tags of applications, such as ` + "`!secret`" + `

## Limits

| limit | at most |
|---|---|
| bytes of a file | %d |
| levels of nesting | %d |
| keys and values | %d |
| keys and values that aliases repeat | %d |
| processors | %d |
| edges | %d |
| characters of a name | %d |
| characters of a type expression or a field path | %d |
| findings that are reported | %d |
`

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
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", name, valueOf(t, name, property), standard, about(t, property))
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
			return "number of bytes, or an amount such as `512MiB`"
		case "store":
			return "path of a folder, URL of a server, or `{raft: NAME}`"
		case "log", "raft", "peers", "tls", "nodes", "etcd", "etcd_tls", "membership", "retry", "checkpoint", "limit":
			return "[mapping](#" + definition + ")"
		case "duration":
			return "[duration](#durations)"
		case "name", "message", "group_name":
			return "[name](#names)"
		case "type":
			return "[type](#types)"
		case "field":
			return "field path or method"
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
	word := strings.NewReplacer("an ", "", "a ", "", "true or false", "`true` or `false`").Replace(typeWords[fmt.Sprint(property["type"])])
	switch word + " " + name { // a group has a list called processors
	case "list edges", "mapping messages", "mapping processors", "mapping groups", "mapping pool", "mapping errors", "mapping cluster", "mapping durable", "mapping range":
		return "[" + word + "](#" + name + ")"
	}
	if low, ok := property["minimum"].(float64); ok {
		word += fmt.Sprintf(", %.0f to %.0f", low, property["maximum"])
	}
	if length, ok := property["maxLength"].(float64); ok {
		word += fmt.Sprintf(", at most %.0f characters", length)
	}
	return word
}
