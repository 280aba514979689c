package generated_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// row has the limits of a key of the topology file: the keyword of the schema, and the constants that must
// agree with it. The schema says what a file may contain. The runtime checks what it gets from the
// environment, options and other nodes, and has a constant of its own.
//
// A constant must equal the value of the schema. With ≤ before it, it may be larger: the runtime accepts
// more than a file may say. A text in parentheses says why there is no constant.
// A pointer means the same value in another place of the schema.
//
// These keywords are for limits that the schema cannot express:
//
//	least, most  of a duration. The description in the schema has to state them.
//	bytes        of a text with characters outside of ASCII
//	entries      of a mapping
//	file         a file with the duration, for least and most
type row map[string]string

const (
	inCode   = "(generated code has a constant of Go)"
	noLimit  = "(the runtime has no limit)"
	aPath    = "(the operating system limits paths)"
	goName   = "(it is a name in Go)"
	reserved = "(reserved)"
	// Names of nodes are in addresses, in certificates and on disks.
	nodeName = "≤runtime/member.NameMax ≤runtime/cluster/table.NameBytesMax ≤runtime/cluster/session.nameBytesMax ≤runtime/cluster.nodeNameMax ≤runtime/raft.nameBytesMax ≤runtime/raft/wal.nameMax"
	// Names of processors are in the address table, in logs and in the environment of processes.
	processorName = "spec.nameMax ≤runtime/cluster/table.NameBytesMax ≤runtime/raft/wal.nameMax ≤runtime/process.nameMax"
	nodeAddress   = "runtime/transport.AddressBytesMax runtime/cluster/table.NameBytesMax"
)

// limits has a row for each key of the schema with a limit or a default. A key is its place in the schema
// without "properties" and "$defs".
var limits = map[string]row{
	"/package":                    {"maxLength": "spec.nameMax", "pattern": goName},
	"/output":                     {"default": "spec.defaultOutput", "pattern": "(it is a file of the compiler)"},
	"/name":                       {"maxLength": processorName + " ≤runtime/cluster/session.nameBytesMax", "pattern": "(TestNamesFitTheRuntime)"},
	"/message":                    {"maxLength": "spec.nameMax", "pattern": goName},
	"/messages/propertyNames":     {"maxLength": "spec.nameMax", "pattern": goName},
	"/processors/propertyNames":   {"maxLength": processorName, "pattern": "(as /name)", "entries": "spec.processorsMax"},
	"/groups/propertyNames":       {"maxLength": "spec.nameMax", "pattern": "(as /name)"},
	"/type":                       {"maxLength": "spec.typeMax", "pattern": goName},
	"/field":                      {"maxLength": "spec.typeMax", "pattern": goName},
	"/duration":                   {"pattern": "(time.ParseDuration)"},
	"/durationOrZero/anyOf/0":     {"minimum": "0", "maximum": "0"},
	"/durationOrZero/anyOf/1":     {"pattern": "(time.ParseDuration)"},
	"/health_check_interval":      {"default": "spec.defaultHealthCheckInterval", "least": "spec.timeoutMin", "file": "health_check_interval: %s"},
	"/item/anyOf/0":               {"pattern": "(spec parses it)", "least": "spec.everyMin"},
	"/item/anyOf/1/propertyNames": {"pattern": "(spec parses it)", "entries": "spec.edgesMax"},

	"/pool/workers":          {"minimum": "0", "maximum": "runtime/piper.workersMax", "default": "0"},
	"/pool/batch":            {"minimum": "1", "maximum": "runtime/piper.batchMax", "default": "spec.defaultBatch"},
	"/pool/rebalance":        {"default": "spec.defaultRebalance", "least": "0", "file": "pool: {rebalance: %s}"},
	"/pool/drain_timeout":    {"default": "spec.defaultDrainTimeout", "least": "0", "file": "pool: {drain_timeout: %s}"},
	"/pool/cycle_limit":      {"minimum": "0", "maximum": "(at 64 bytes each, 64 GiB; an option and the environment may set any number)", "default": "0"},
	"/message_limit/anyOf/0": {"minimum": "spec.messageLimitMin runtime/piper.messageLimitMin runtime/process.MessageLimitMin", "maximum": "spec.messageLimitMax runtime/piper.messageLimitMax runtime/process.MessageLimitMax"},
	"/message_limit/anyOf/1": {"pattern": "(spec.bytesForm)"},

	"/errors/path":       {"maxLength": aPath},
	"/errors/top":        {"minimum": "1", "maximum": "runtime/errtop.topMax", "default": "spec.defaultTop runtime/errtop.topDefault"},
	"/errors/keep":       {"default": "spec.defaultKeep runtime/errtop.keepDefault", "least": "1", "file": "errors: {path: e.pb, keep: %s}"},
	"/errors/dump_every": {"default": "spec.defaultDumpEvery runtime/errtop.dumpEveryDefault", "least": "spec.dumpEveryMin runtime/errtop.dumpEveryMin", "file": "errors: {path: e.pb, dump_every: %s}"},

	"/processor/new":       {"maxLength": "spec.nameMax", "pattern": goName},
	"/processor/instances": {"minimum": "1", "maximum": "spec.placedInstances runtime/cluster/table.ContainersMax", "default": "spec.defaultInstances", "entries": "spec.machinesMax"},
	"/processor/isolation": {"enum": inCode, "default": inCode},
	"/processor/kind":      {"enum": inCode},
	"/processor/transport": {"enum": inCode, "default": inCode},
	"/memory/anyOf/0":      {"minimum": "spec.memoryMin", "maximum": "spec.memoryMax"},
	"/memory/anyOf/1":      {"pattern": "(spec.bytesForm)"},

	"/restart/anyOf/0":               {"enum": inCode},
	"/restart/anyOf/1/policy":        {"enum": inCode},
	"/restart/anyOf/1/max_restarts":  {"minimum": "0", "maximum": "(more would be as good as unlimited)", "default": "0"},
	"/restart/anyOf/1/delay":         {"default": "0", "least": "0", "file": "processors: {p: {restart: {policy: always, delay: %s}}}"},
	"/restart/anyOf/1/max_delay":     {"least": "1", "file": "processors: {p: {restart: {policy: always, delay: 1ns, max_delay: %s}}}"},
	"/restart/anyOf/1/window":        {"least": "1", "file": "processors: {p: {restart: {policy: always, window: %s}}}"},
	"/restart/anyOf/1/jitter":        {"minimum": "0", "maximum": "1", "default": "0"},
	"/health/timeout":                {"least": "spec.timeoutMin", "file": "processors: {p: {health: {timeout: %s}}}"},
	"/health/startup_timeout":        {"least": "spec.timeoutMin", "file": "processors: {p: {health: {startup_timeout: %s}}}"},
	"/on_error/anyOf/0":              {"enum": inCode},
	"/on_error/anyOf/1/then":         {"enum": inCode, "default": inCode},
	"/on_error/anyOf/1/max_attempts": {"minimum": "1", "maximum": "runtime/durable.attemptsMax"},
	"/on_error/anyOf/1/delay":        {"default": "0", "least": "0", "file": "processors: {p: {on_error: {then: retry, delay: %s}}}"},
	"/on_error/anyOf/1/max_delay":    {"least": "1", "file": "processors: {p: {on_error: {then: retry, delay: 1ns, max_delay: %s}}}"},
	"/on_error/anyOf/1/jitter":       {"minimum": "0", "maximum": "1", "default": "0"},
	"/group/strategy":                {"enum": inCode, "default": inCode},
	"/group/intensity":               {"minimum": "1", "maximum": "(more would be as good as unlimited)", "default": "spec.defaultIntensity"},
	"/group/period":                  {"default": "spec.defaultPeriod", "least": "spec.timeoutMin", "file": "groups: {g: {processors: [a], intensity: 1, period: %s}}"},
	"/group/shutdown":                {"default": "spec.defaultShutdown", "least": "spec.timeoutMin", "file": "groups: {g: {processors: [a], strategy: one-for-all, shutdown: %s}}"},

	"/edge/anyOf/1/capacity":      {"minimum": "1", "maximum": "(at 64 bytes each, 1 GiB)", "default": "spec.defaultCapacity"},
	"/edge/anyOf/1/full":          {"enum": inCode, "default": inCode},
	"/edge/anyOf/1/timeout":       {"least": "1", "file": "edges: [{a -> b: {message: M, timeout: %s}}]"},
	"/edge/anyOf/1/delivery":      {"enum": inCode, "default": inCode},
	"/input_timeout":              {"least": "spec.timeoutMin", "file": "edges: [{a -> b: {message: M, input_timeout: %s}}]"},
	"/arm":                        {"enum": inCode, "default": inCode},
	"/route/anyOf/0":              {"enum": inCode},
	"/route/anyOf/1/range/offset": {"minimum": "0", "maximum": "spec.placedInstances-1"},
	"/route/anyOf/1/range/count":  {"minimum": "1", "maximum": "/processor/instances"},

	"/log/path":                   {"maxLength": aPath},
	"/log/sync":                   {"enum": inCode, "default": inCode},
	"/log/interval":               {"default": "spec.defaultSyncInterval runtime/raft/wal.intervalDefault", "least": "spec.syncIntervalMin", "file": "processors: {l: {kind: fsm, state: S, update: U, log: {path: l, sync: interval, interval: %s}}}"},
	"/log/snapshot_every":         {"minimum": "1", "maximum": noLimit, "default": "spec.defaultSnapshotEvery runtime/raft.snapshotEveryDefault"},
	"/peers/propertyNames":        {"maxLength": nodeName, "pattern": "(TestNamesFitTheRuntime)", "entries": "spec.peersMax ≤runtime/raft.membersMax"},
	"/peers/additionalProperties": {"maxLength": "runtime/raft.nameBytesMax " + nodeAddress, "bytes": "spec.addressMax runtime/raft.nameBytesMax"},
	"/election_timeout":           {"default": "spec.defaultElectionTimeout runtime/raft.defaultElection", "least": "1", "file": "processors: {l: {kind: raft, controller: a, peers: {n: \"h:1\"}, log: {path: l}, election_timeout: %s}}"},
	"/heartbeat":                  {"default": "spec.defaultHeartbeat runtime/raft.defaultHeartbeat", "least": "spec.heartbeatMin", "file": "processors: {l: {kind: raft, controller: a, peers: {n: \"h:1\"}, log: {path: l}, heartbeat: %s}}"},
	"/tls/cert":                   {"maxLength": aPath},
	"/tls/key":                    {"maxLength": aPath},
	"/tls/ca":                     {"maxLength": aPath},
	"/trust_domain":               {"maxLength": "runtime/transport/certs.domainBytesMax", "pattern": "(TestNamesFitTheRuntime)"},

	"/cluster/dir":                 {"maxLength": aPath},
	"/cluster/addresses":           {"enum": inCode, "default": inCode},
	"/cluster/fence":               {"enum": "runtime/member.FenceMajority runtime/member.FenceOff", "default": "runtime/member.FenceMajority"},
	"/cluster/tie_breaker":         {"maxLength": "(a name of /nodes)"},
	"/cluster/rebalance":           {"enum": inCode, "default": inCode},
	"/cluster/neighborhood":        {"minimum": "1", "maximum": noLimit, "default": "spec.defaultNeighborhood"},
	"/nodes/propertyNames":         {"maxLength": nodeName, "pattern": "(TestNamesFitTheRuntime)", "entries": "spec.nodesOfCluster ≤runtime/cluster/table.NodesMax ≤runtime/member.membersMax"},
	"/nodes/additionalProperties":  {"maxLength": nodeAddress, "bytes": "spec.addressMax " + nodeAddress, "entries": "spec.nodesOfRaft runtime/cluster/table/raft.membersMax-1"},
	"/etcd/endpoints/items":        {"maxLength": noLimit},
	"/etcd/prefix":                 {"maxLength": "runtime/cluster/table/etcd.prefixBytesMax", "pattern": noLimit},
	"/etcd_tls/cert":               {"maxLength": aPath},
	"/etcd_tls/key":                {"maxLength": aPath},
	"/etcd_tls/ca":                 {"maxLength": aPath},
	"/membership/profile":          {"enum": "runtime/member.ProfileDocument runtime/member.ProfileLAN runtime/member.ProfileLocal", "default": "spec.defaultProfile runtime/member.ProfileLAN"},
	"/membership/detector":         {"enum": inCode, "default": "spec.defaultDetector"},
	"/membership/interval":         membershipTime("interval"),
	"/membership/direct_timeout":   membershipTime("direct_timeout"),
	"/membership/indirect_timeout": membershipTime("indirect_timeout"),
	"/membership/suspicion":        membershipTime("suspicion"),
	"/membership/helpers":          {"minimum": "0", "maximum": "runtime/member.HelpersMax"},
	"/retry/timeout":               {"default": "spec.defaultResendTimeout runtime/cluster.retryTimeoutDefault", "least": "spec.timeoutMin", "file": inCluster("retry: {timeout: %s}")},
	"/retry/min":                   {"default": "spec.defaultResendMin runtime/cluster/session.RetryMinDefault", "least": "spec.timeoutMin", "file": inCluster("retry: {min: %s}")},
	"/retry/max":                   {"default": "spec.defaultResendMax runtime/cluster/session.RetryMaxDefault", "least": "spec.timeoutMin", "file": inCluster("retry: {max: %s}")},
	"/placement":                   {"default": inCode, "entries": "spec.placedMax runtime/cluster/table.ProcessorsMax"},
	"/placement/anyOf/0":           {"enum": inCode},
	"/placement/anyOf/1/node":      {"maxLength": "(a name of /nodes)"},
	"/placement/anyOf/1/role":      {"maxLength": reserved},
	"/checkpoint/every":            {"least": reserved},
	"/checkpoint/copies":           {"minimum": reserved, "maximum": reserved},

	"/durable/lease":      {"default": "spec.defaultLease runtime/durable.leaseDefault", "least": "spec.leaseMin runtime/durable.leaseMin", "file": "durable: {store: s, lease: %s}"},
	"/durable/listen":     {"maxLength": noLimit},
	"/store/anyOf/0":      {"maxLength": aPath},
	"/limit/concurrency":  {"minimum": "1", "maximum": "runtime/durable/edges.ActivationsMax"},
	"/limit/rate/anyOf/0": {"minimum": "1", "maximum": "spec.rateMax"},
	"/limit/rate/anyOf/1": {"pattern": "(spec.rateForm)"},
}

// pages are sentences of the documentation with the value of constants. docs/reference/topology.md is generated from
// the schema.
var pages = []struct{ page, text, constants string }{
	{"raft", "| instances of a state machine with a log | %s |", "spec.machinesMax"},
	{"raft", "| added updates that are not committed | %s |", "runtime/fsm.upcomingDefault"},
	{"raft", "| members of a group | %s |", "runtime/raft.membersMax"},
	{"raft", "| the name and the address of a member | %s bytes each |", "runtime/raft.nameBytesMax"},
	{"raft", "| pending requests of a `raft.Session`; the name of a client | %s; %s bytes |", "runtime/raft.inFlightMax runtime/fsm.clientNameMax"},
	{"raft", "| pending requests of a `raft.Session`; the name of a client | %s; %s bytes |", "runtime/raft.inFlightMax runtime/raft.clientNameMax"},
	{"nodes", "| nodes that are connected and not in the configuration | %s |", "runtime/transport/grpc.unconfiguredMax"},
	{"nodes", "A list has at most %s members.", "runtime/member.membersMax"},
	{"nodes", "It has at most %s processors and %s instances.", "runtime/cluster/table.ProcessorsMax runtime/cluster/table.ContainersMax"},
	{"nodes", "A name or an address has at most %s bytes, and a node %s roles.", "runtime/cluster/table.NameBytesMax runtime/cluster/table.RolesMax"},
	{"nodes", "| nodes at most | %s | %s | %s |", "runtime/cluster/table/raft.membersMax runtime/cluster/table.NodesMax runtime/cluster/table.NodesMax"},
	{"durable", "tags of a promise, headers of a value: %s, with names of %s and values of %s bytes", "runtime/durable/protocol.MaxTags runtime/durable/protocol.MaxTagKey runtime/durable/protocol.MaxTagValue"},
}

// ofFiles are the constants of spec/limits.go that limit no key: they bound what reading a file costs.
var ofFiles = []string{
	"bytesMax", "depthMax", "nodesMax", "indicatorsMax", "aliasNodesMax", "typeDepthMax", "arrayMax", "findingsMax", "similarStepsMax",
	"electionFactor",  // a relation of two keys
	"millisecondsMin", // for a suggestion
	"formatVersion", "defaultAttempts",
}

func inCluster(text string) string { return `cluster: {nodes: {n: "h:1"}, ` + text + "}" }

func membershipTime(key string) row {
	return row{"least": "spec.timeoutMin runtime/member.timeMin", "most": "spec.memberTimeMax runtime/member.timeMax", "file": inCluster("membership: {" + key + ": %s}")}
}

// TestLimitsAreTheSameEverywhere compares each limit and default of the schema with those of package spec
// and of the runtime. A limit without a row fails.
func TestLimitsAreTheSameEverywhere(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(schemas.Topology, &schema); err != nil {
		t.Fatal(err)
	}
	places := map[string]map[string]any{}
	limited(schema, "", places)
	c, named := newConstants(), map[string]bool{}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		keywords := places[place]
		for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
			if limits[place][keyword] == "" && keyword != "description" {
				t.Errorf("%s has %s, which has no row: say which constant of the runtime is the same", place, keyword)
			}
		}
	}
	for _, place := range slices.Sorted(maps.Keys(limits)) {
		for keyword, words := range limits[place] {
			value, inSchema := places[place][keyword]
			switch {
			case keyword == "file":
				continue
			case !inSchema && !slices.Contains([]string{"least", "most", "bytes", "entries"}, keyword):
				t.Errorf("the schema has no %s at %s", keyword, place)
				continue
			case value == nil && !strings.HasPrefix(words, "("):
				value = meaning(t, c, strings.Fields(words)[0])
			}
			for word := range strings.FieldsSeq(words) {
				if strings.HasPrefix(word, "(") {
					break
				}
				name := strings.TrimPrefix(word, "≤")
				named[strings.TrimSuffix(name, "-1")] = true
				var other any
				if strings.HasPrefix(word, "/") {
					other = places[word][keyword]
				} else {
					other = meaning(t, c, name)
				}
				if !agree(value, other, word) {
					t.Errorf("%s of %s is %v, and %s is %v", keyword, place, value, word, other)
				}
			}
		}
		row := limits[place]
		description, _ := places[place]["description"].(string)
		checkDuration(t, c, place, row, description)
		if bytes := places[place]["maxLength"]; bytes != nil && row["bytes"] == "" && strings.Contains(row["maxLength"], "runtime/") && !isASCII(places[place]) {
			t.Errorf("%s may have characters outside of ASCII, and the runtime counts bytes: limit the bytes in package spec, and add them to the row", place)
		}
	}
	p, err := c.Import(module + "spec")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.Scope().Names() {
		if strings.HasSuffix(c.files.Position(p.Scope().Lookup(name).Pos()).Filename, "limits.go") && !named["spec."+name] && !slices.Contains(ofFiles, name) {
			t.Errorf("no row names spec.%s", name)
		}
	}
}

// keywords of the schema that limit a value. All others that do so, such as minLength, are 1 where they occur.
var keywords = []string{"maxLength", "minimum", "maximum", "maxItems", "maxProperties", "pattern", "enum", "default"}

// limited adds the parts of a schema that limit a value or have a default.
func limited(node any, place string, places map[string]map[string]any) {
	switch node := node.(type) {
	case []any:
		for i, inner := range node {
			limited(inner, place+"/"+strconv.Itoa(i), places)
		}
	case map[string]any:
		found := map[string]any{}
		for _, keyword := range keywords {
			switch v := node[keyword].(type) {
			case nil, bool, map[string]any: // a property may have the name of a keyword
			default:
				found[keyword] = v
			}
		}
		if ref, _ := node["$ref"].(string); strings.HasPrefix(ref, "#/$defs/duration") {
			found["least"] = nil
		}
		if len(found) > 0 {
			found["description"] = node["description"]
			places[place] = found
		}
		for key, inner := range node {
			switch {
			case slices.Contains(keywords, key) && found[key] != nil || key == "examples":
			case key == "properties" || key == "$defs":
				limited(inner, place, places)
			default:
				limited(inner, place+"/"+key, places)
			}
		}
	}
}

// meaning is the value of a constant, a number or an amount of memory.
func meaning(t *testing.T, c *constants, word string) any {
	t.Helper()
	if isConstant(word) {
		return c.value(t, word)
	}
	n, err := strconv.ParseFloat(word, 64)
	if err != nil {
		t.Fatalf("%s is neither a constant nor a number", word)
	}
	return n
}

// agree compares a value of the schema, or of another constant, with the value of a word.
func agree(value, other any, word string) bool {
	if list, ok := value.([]any); ok {
		return slices.Contains(list, other)
	}
	n, number := other.(float64)
	if text, ok := value.(string); ok && number {
		d, err := time.ParseDuration(text)
		return err == nil && float64(d) == n
	}
	if v, ok := value.(float64); ok && strings.HasPrefix(word, "≤") {
		return v <= n
	}
	return value == other
}

// isASCII reports whether a pattern allows only characters of ASCII.
func isASCII(schema map[string]any) bool {
	pattern, ok := schema["pattern"].(string)
	return ok && !strings.Contains(pattern, `\p{`) && !strings.ContainsFunc(pattern, func(r rune) bool { return r > unicode.MaxASCII })
}

// says reports whether a limit is in the description of a key, or once for several keys in the page: in
// their section, or in a line that names the key or its section.
func says(t *testing.T, place, description, limit string) bool {
	t.Helper()
	if strings.Contains(strings.ToLower(description), limit) {
		return true
	}
	text, err := os.ReadFile("../docs/reference/topology.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split("/"+place, "/")
	section, key := parts[len(parts)-2], parts[len(parts)-1]
	in := ""
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			in = strings.TrimSpace(title)
		}
		names := strings.Contains(line, "`"+key+"`") || section != "" && (in == section || strings.Contains(line, "`"+section+"`"))
		if names && strings.Contains(strings.ReplaceAll(strings.ToLower(line), "`", ""), limit) {
			return true
		}
	}
	return false
}

// checkDuration makes sure that package spec accepts the shortest and the longest duration and no other ones,
// and that the description in the schema states them.
func checkDuration(t *testing.T, c *constants, place string, r row, description string) {
	t.Helper()
	if r["file"] == "" {
		if r["least"] != "" && r["least"] != reserved && strings.HasPrefix(place, "/item/") == false {
			t.Errorf("%s has no file", place)
		}
		return
	}
	key := place[strings.LastIndexByte(place, '/')+1:]
	accepts := func(n float64, want bool) {
		d := time.Duration(n)
		file := "version: 1\nname: n\n" + fmt.Sprintf(r["file"], d) + "\n"
		for top, rest := range map[string]string{"processors:": "processors: {a: {}, b: {}}\n", "edges:": "edges: []\n"} {
			if !strings.Contains(file, top) || top == "processors:" && strings.Contains(file, "{processors:") {
				file += rest
			}
		}
		_, findings := spec.Parse("topology.yml", []byte(file))
		refused := slices.ContainsFunc(findings, func(f finding.Finding) bool {
			return strings.HasSuffix(f.Pointer, "/"+key) && (f.Code == finding.OutOfRange || f.Code == finding.Form)
		})
		reached := len(findings) == 0 || findings[0].Code != finding.Syntax
		if refused == want || !reached {
			t.Errorf("%s: %v is refused: %v, want %v\n%s%v", place, d, refused, !want, file, findings)
		}
	}
	least := meaning(t, c, strings.Fields(r["least"])[0]).(float64)
	accepts(least, true)
	accepts(least-1, false)
	if d := time.Duration(least); d > 1 && !says(t, place, description, "at least "+d.String()) {
		t.Errorf("neither the description of %s nor the page says: at least %v", place, d)
	}
	if r["most"] != "" {
		most := meaning(t, c, strings.Fields(r["most"])[0]).(float64)
		accepts(most, true)
		accepts(most+1, false)
		text := regexp.MustCompile(`([hm])0[ms]`).ReplaceAllString(time.Duration(most).String(), "$1") // 1h0m0s
		if !says(t, place, description, "at most "+strings.TrimSuffix(text, "0s")) {
			t.Errorf("neither the description of %s nor the page says: at most %s", place, text)
		}
	}
}

// TestPagesHaveTheLimits compares numbers in the documentation with the code.
func TestPagesHaveTheLimits(t *testing.T) {
	c := newConstants()
	for _, p := range pages {
		text, err := os.ReadFile("../docs/reference/" + p.page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		var values []any
		for name := range strings.FieldsSeq(p.constants) {
			n := fmt.Sprintf("%.0f", c.value(t, name))
			for i := len(n) - 3; i > 0; i -= 3 {
				n = n[:i] + "," + n[i:]
			}
			values = append(values, n)
		}
		if want := fmt.Sprintf(p.text, values...); !strings.Contains(string(text), want) {
			t.Errorf("%s.md does not say: %s", p.page, want)
		}
	}
}

// TestNamesFitTheRuntime passes the longest names and all characters that the schema accepts to the checks of
// the runtime.
func TestNamesFitTheRuntime(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(schemas.Topology, &schema); err != nil {
		t.Fatal(err)
	}
	places := map[string]map[string]any{}
	limited(schema, "", places)
	for place, check := range map[string]func(string) error{
		"/nodes/propertyNames": certs.CheckNode,
		"/peers/propertyNames": certs.CheckNode,
		"/trust_domain":        certs.CheckTrustDomain,
		"/name": func(name string) error {
			id := certs.ID{TrustDomain: certs.DefaultTrustDomain(name), Topology: name, Node: "n1"}
			return id.Check()
		},
	} {
		pattern, most := regexp.MustCompile(places[place]["pattern"].(string)), int(places[place]["maxLength"].(float64))
		names := []string{strings.Repeat("a", most), strings.Repeat("Z", most)}
		for c := rune(0); c < 0x3000; c++ {
			names = append(names, string(c), "a"+string(c)+"a", string(c)+"a", "a"+string(c))
		}
		accepted := 0
		for _, name := range names {
			if !pattern.MatchString(name) || strings.HasPrefix(name, "x-") {
				continue
			}
			accepted++
			if err := check(name); err != nil {
				t.Errorf("%s accepts %q: %v", place, name, err)
			}
		}
		if accepted < 100 {
			t.Errorf("%s accepts only %d names", place, accepted)
		}
	}
}
