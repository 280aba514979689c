package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"gopkg.in/yaml.v3"

	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec/finding"
)

// schemaTree returns the schema as plain data.
func schemaTree(t *testing.T) any {
	t.Helper()
	var tree any
	if err := json.Unmarshal(schemas.Topology, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// resolveSchema returns the part of the schema to which a pointer leads.
func resolveSchema(t *testing.T, pointer string) any {
	t.Helper()
	at := schemaTree(t)
	for part := range strings.SplitSeq(pointer, "/") {
		switch node := at.(type) {
		case map[string]any:
			if part != "" {
				at = node[part]
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(node) {
				t.Fatal("the schema has nothing at", pointer)
			}
			at = node[i]
		default:
			t.Fatal("the schema has nothing at", pointer)
		}
	}
	return at
}

// definition returns the mapping in the schema to which a pointer leads.
func definition(t *testing.T, pointer string) map[string]any {
	t.Helper()
	d, ok := resolveSchema(t, pointer).(map[string]any)
	if !ok {
		t.Fatal("the schema has nothing at", pointer)
	}
	return d
}

func keysOf[T any](s setters[T]) []string { return slices.Sorted(maps.Keys(s)) }

// TestSchemaAndParserNameTheSameKeys compares each mapping of the schema with the table of keys
// in build.go.
func TestSchemaAndParserNameTheSameKeys(t *testing.T) {
	for pointer, parser := range map[string][]string{
		"":                                      keysOf(topologyKeys),
		"/properties/pool":                      keysOf(poolKeys),
		"/properties/errors":                    keysOf(errorsKeys),
		"/$defs/processor":                      keysOf(processorKeys),
		"/$defs/edge/anyOf/1":                   keysOf(edgeKeys),
		"/$defs/timer":                          keysOf(timerKeys),
		"/$defs/restart/anyOf/1":                keysOf(restartKeys),
		"/$defs/health":                         keysOf(healthKeys),
		"/$defs/on_error/anyOf/1":               keysOf(onErrorKeys),
		"/$defs/group":                          keysOf(groupKeys),
		"/$defs/log":                            keysOf(logKeys),
		"/$defs/raft":                           keysOf(raftKeys),
		"/$defs/tls":                            keysOf(tlsKeys),
		"/properties/cluster":                   keysOf(clusterKeys),
		"/$defs/etcd":                           keysOf(etcdKeys),
		"/$defs/etcd_tls":                       keysOf(tlsKeys),
		"/$defs/membership":                     keysOf(membershipKeys),
		"/$defs/retry":                          keysOf(resendKeys),
		"/$defs/placement/anyOf/1":              keysOf(placementKeys),
		"/properties/durable":                   keysOf(durableKeys),
		"/$defs/store/anyOf/1":                  keysOf(storeKeys),
		"/$defs/limit":                          keysOf(limitKeys),
		"/$defs/route/anyOf/1":                  keysOf(routeKeys),
		"/$defs/route/anyOf/1/properties/range": keysOf(rangeKeys),
	} {
		schema := definition(t, pointer)
		properties, _ := schema["properties"].(map[string]any)
		if diff := cmp.Diff(parser, slices.Sorted(maps.Keys(properties))); diff != "" {
			t.Errorf("%q (-parser +schema):\n%s", pointer, diff)
		}
		if schema["additionalProperties"] != false {
			t.Errorf("%q accepts unknown keys", pointer)
		}
		if patterns, _ := schema["patternProperties"].(map[string]any); patterns["^x-"] == nil {
			t.Errorf("%q does not accept x- keys", pointer)
		}
	}
}

// TestSchemaAndParserHaveTheSameDefaults parses a file without optional keys and compares the model
// with the defaults in the schema.
func TestSchemaAndParserHaveTheSameDefaults(t *testing.T) {
	topology := parseClean(t, "version: 1\nname: defaults\nprocessors: {a: {}}\nedges: [{a -> a: M}]\nerrors: {path: errors.pb}\ngroups: {g: {processors: [a]}}\n")
	p, e := topology.Processors[0], topology.Edges[0]
	machine := parseClean(t, `version: 1
name: machines
processors:
  a: {}
  m: {kind: raft, controller: a, peers: {n1: "127.0.0.1:1"}, log: {path: log}}
edges: []
`).Processors[1].Machine
	many := parseClean(t, `version: 1
name: many
cluster: {nodes: {n1: "127.0.0.1:1"}}
processors: {a: {}, b: {}}
edges: [{a -> b: M}]
`)
	cluster := many.Cluster
	kept := parseClean(t, `version: 1
name: kept
durable: {store: ./promises, listen: "127.0.0.1:1"}
processors: {api: {external: true}, a: {blocking: true}}
edges: [{api -> a: {message: M, durable: true}}]
`).Durable
	model := map[string]any{
		"/properties/durable/properties/lease":           kept.Lease,
		"/properties/durable/properties/insecure":        kept.Insecure,
		"/$defs/edge/anyOf/1/properties/durable":         e.Durable,
		"/properties/cluster/properties/addresses":       cluster.Addresses,
		"/properties/cluster/properties/fence":           cluster.Fence,
		"/properties/cluster/properties/rebalance":       cluster.Rebalance,
		"/properties/cluster/properties/neighborhood":    cluster.Neighborhood,
		"/$defs/membership/properties/profile":           cluster.Membership.Profile,
		"/$defs/membership/properties/detector":          cluster.Membership.Detector,
		"/$defs/retry/properties/timeout":                cluster.Retry.Timeout,
		"/$defs/retry/properties/min":                    cluster.Retry.Min,
		"/$defs/retry/properties/max":                    cluster.Retry.Max,
		"/$defs/placement":                               many.Processors[0].Placement.Kind,
		"/$defs/edge/anyOf/1/properties/delivery":        many.Edges[0].Delivery,
		"/$defs/processor/properties/transport":          map[bool]string{false: "grpc", true: byController}[machine.Raft.ByController],
		"/$defs/log/properties/sync":                     machine.Log.Sync,
		"/$defs/log/properties/interval":                 machine.Log.Interval,
		"/$defs/log/properties/snapshot_every":           machine.Log.SnapshotEvery,
		"/$defs/raft/properties/forward":                 machine.Raft.Forward,
		"/$defs/election_timeout":                        machine.Raft.ElectionTimeout,
		"/$defs/heartbeat":                               machine.Raft.Heartbeat,
		"/$defs/insecure":                                machine.Raft.Insecure,
		"/properties/output":                             topology.Output.Value,
		"/properties/messages":                           topology.Messages,
		"/properties/pool/properties/workers":            topology.Pool.Workers,
		"/properties/pool/properties/batch":              topology.Pool.Batch,
		"/properties/pool/properties/rebalance":          topology.Pool.Rebalance,
		"/properties/pool/properties/drain_timeout":      topology.Pool.DrainTimeout,
		"/properties/pool/properties/cycle_limit":        topology.Pool.CycleLimit,
		"/properties/errors/properties/top":              topology.Errors.Top,
		"/properties/errors/properties/keep":             topology.Errors.Keep,
		"/properties/errors/properties/dump_every":       topology.Errors.DumpEvery,
		"/properties/errors/properties/crash":            topology.Errors.Crash,
		"/$defs/processor/properties/instances":          p.Instances,
		"/$defs/processor/properties/blocking":           p.Blocking,
		"/$defs/processor/properties/external":           p.External,
		"/$defs/edge/anyOf/1/properties/capacity":        e.Capacity,
		"/$defs/edge/anyOf/1/properties/full":            e.Full,
		"/$defs/edge/anyOf/1/properties/shared":          e.Shared,
		"/properties/health_check_interval":              topology.HealthCheckInterval,
		"/properties/groups":                             parseClean(t, "version: 1\nname: defaults\nprocessors: {a: {}}\nedges: []\n").Groups,
		"/$defs/processor/properties/isolation":          p.Isolation,
		"/$defs/processor/properties/revert":             machine.Revert,
		"/$defs/restart/anyOf/1/properties/max_restarts": p.Restart.MaxRestarts,
		"/$defs/restart/anyOf/1/properties/delay":        p.Restart.Delay,
		"/$defs/restart/anyOf/1/properties/jitter":       p.Restart.Jitter,
		"/$defs/on_error/anyOf/1/properties/then":        p.OnError.Then,
		"/$defs/on_error/anyOf/1/properties/delay":       p.OnError.Delay,
		"/$defs/on_error/anyOf/1/properties/jitter":      p.OnError.Jitter,
		"/$defs/group/properties/strategy":               topology.Groups[0].Strategy,
		"/$defs/group/properties/intensity":              topology.Groups[0].Intensity,
		"/$defs/group/properties/period":                 topology.Groups[0].Period,
		"/$defs/group/properties/shutdown":               topology.Groups[0].Shutdown,
		"/$defs/arm":                                     map[bool]string{false: "first-message", true: armAtStart}[e.ArmAtStart],
	}
	found := map[string]bool{}
	eachSchema("", schemaTree(t), func(pointer string, schema map[string]any) {
		value, ok := schema["default"]
		if !ok {
			return
		}
		found[pointer] = true
		got := fmt.Sprint(model[pointer])
		switch m := model[pointer].(type) {
		case time.Duration:
			if d, err := time.ParseDuration(fmt.Sprint(value)); err != nil || d != m {
				t.Errorf("%s is %v in the schema and %v in the model", pointer, value, m)
			}
		case []Message, []Group:
			if reflect.ValueOf(m).Len() != 0 {
				t.Errorf("%s is not empty", pointer)
			}
		default:
			if got != fmt.Sprint(value) {
				t.Errorf("%s is %v in the schema and %s in the model", pointer, value, got)
			}
		}
	})
	if diff := cmp.Diff(slices.Sorted(maps.Keys(model)), slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("defaults (-model +schema):\n%s", diff)
	}
}

// TestSchemaAndParserHaveTheSameChoicesAndForms: generated_test TestLimitsAreTheSameEverywhere compares the numbers.
func TestSchemaAndParserHaveTheSameChoicesAndForms(t *testing.T) {
	for pointer, want := range map[string]any{
		"/properties/version/const":                     float64(formatVersion),
		"/$defs/edge/anyOf/1/properties/full/enum":      []any{string(Block), string(DropOldest), string(DropNewest), string(Fail)},
		"/$defs/restart/anyOf/0/enum":                   []any{string(Never), string(OnFailure), string(Always)},
		"/$defs/restart/anyOf/1/properties/policy/enum": []any{string(Never), string(OnFailure), string(Always)},
		"/$defs/processor/properties/isolation/enum":    []any{string(Goroutine), string(Process)},
		"/$defs/memory/anyOf/1/pattern":                 bytesForm.String(),
		"/$defs/message_limit/anyOf/1/pattern":          bytesForm.String(),
		"/$defs/on_error/anyOf/0/enum":                  []any{string(Stop), string(Skip), string(Retry)},
		"/$defs/on_error/anyOf/1/properties/then/enum":  []any{string(Stop), string(Skip), string(Retry)},
		"/$defs/group/properties/strategy/enum":         []any{string(OneForOne), string(OneForAll), string(RestForOne)},
		"/$defs/arm/enum":                               []any{"first-message", armAtStart},
		"/$defs/route/anyOf/0/enum":                     []any{string(RouteLocal), string(RouteBroadcast), string(RouteCaller)},
		"/$defs/edge/anyOf/1/properties/delivery/enum":  []any{AtLeastOnce, AtMostOnce},
		"/$defs/placement/anyOf/0/enum":                 []any{string(Spread), string(EveryNode)},
		"/properties/cluster/properties/addresses/enum": []any{string(AddressesRaft), string(AddressesEtcd), string(AddressesBroadcast)},
		"/properties/cluster/properties/fence/enum":     []any{string(FenceMajority), string(FenceOff)},
		"/properties/cluster/properties/rebalance/enum": []any{string(RebalanceNone), string(RebalanceMinimal), string(RebalanceLoad)},
		"/$defs/name/pattern":                           processorNameForm.String(),
		"/$defs/message/pattern":                        messageNameForm.String(),
		"/properties/package/pattern":                   packageNameForm.String(),
	} {
		if diff := cmp.Diff(want, resolveSchema(t, pointer)); diff != "" {
			t.Errorf("%s (-parser +schema):\n%s", pointer, diff)
		}
	}
}

// TestSchemaHelpsEditors checks that each key has a description and that each example is valid.
func TestSchemaHelpsEditors(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	if err := compiler.AddResource(schemaURL, bytes.NewReader(schemas.Topology)); err != nil {
		t.Fatal(err)
	}
	eachSchema("", schemaTree(t), func(pointer string, schema map[string]any) {
		i := strings.LastIndexByte(pointer, '/')
		if strings.HasSuffix(pointer[:max(i, 0)], "/properties") && schema["description"] == nil {
			reference, _ := schema["$ref"].(string)
			if definition(t, strings.TrimPrefix(reference, "#"))["description"] == nil {
				t.Errorf("%s has no description", pointer)
			}
		}
		examples, _ := schema["examples"].([]any)
		for _, example := range examples {
			if err := validateAt(compiler, pointer, example); err != nil {
				t.Errorf("%s: the example %v is invalid: %v", pointer, example, err)
			}
		}
	})
}

// TestCheckKnowsTheSchema checks the assumptions of schemaChecker about the schema.
func TestCheckKnowsTheSchema(t *testing.T) {
	remarks := []string{"description", "default", "examples", "title", "$schema", "$id", "$defs"}
	known := append([]string{
		"$ref", "anyOf", "type", "const", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "items",
		"properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties",
		"dependentRequired", // checkIntensity reports it
	}, remarks...)
	eachSchema("", schemaTree(t), func(pointer string, schema map[string]any) {
		last := pointer[strings.LastIndexByte(pointer, '/')+1:]
		if slices.Contains([]string{"properties", "patternProperties", "$defs", "dependentRequired"}, last) {
			return // its keys are names of properties
		}
		for keyword := range schema {
			if !slices.Contains(known, keyword) {
				t.Errorf("%s has %s, which schemaChecker does not support", pointer, keyword)
			}
			if schema["$ref"] != nil && keyword != "$ref" && !slices.Contains(remarks, keyword) {
				t.Errorf("%s has %s beside a reference, which schemaChecker ignores", pointer, keyword)
			}
			if schema["anyOf"] != nil && keyword != "anyOf" && !slices.Contains(remarks, keyword) {
				t.Errorf("%s has %s beside anyOf, which schemaChecker ignores", pointer, keyword)
			}
		}
		if (schema["minimum"] == nil) != (schema["maximum"] == nil) {
			t.Errorf("%s must have both limits or none", pointer)
		}
		if schema["const"] != nil && pointer != "/properties/version" {
			t.Errorf("%s must not have const, which schemaChecker supports only for the version", pointer)
		}
		kind, one := schema["type"].(string)
		number := kind == "integer" || kind == "number"
		switch {
		case last == "propertyNames":
			names := schema
			if reference, ok := schema["$ref"].(string); ok {
				names = definition(t, strings.TrimPrefix(reference, "#"))
			}
			for keyword := range names {
				if !slices.Contains(append([]string{"type", "pattern", "minLength", "maxLength"}, remarks...), keyword) {
					t.Errorf("%s must not have %s: schemaChecker checks only the form of a name", pointer, keyword)
				}
			}
		case !one && schema["$ref"] == nil && schema["anyOf"] == nil && schema["const"] == nil && !strings.HasSuffix(pointer, "/patternProperties/^x-"):
			t.Errorf("%s must have one type", pointer)
		}
		if kind == "array" && schema["items"] == nil {
			t.Errorf("%s must have a schema for its items", pointer)
		}
		if schema["enum"] != nil && kind != "string" {
			t.Errorf("%s must have only strings as choices", pointer)
		}
		if schema["minimum"] != nil && !number {
			t.Errorf("%s has limits, so it must be a number", pointer)
		}
		if schema["minProperties"] != nil && schema["required"] != nil {
			t.Errorf("%s must not have both minProperties and required: schemaChecker would report only one of them", pointer)
		}
		patterns, _ := schema["patternProperties"].(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		others := slices.DeleteFunc(slices.Collect(maps.Keys(patterns)), func(pattern string) bool { return pattern == "^x-" }) // the walker removes these keys
		if len(others) > 1 || len(others) == 1 && len(properties) > 0 {
			t.Errorf("%s may have several schemas for one key, and schemaChecker uses only one", pointer)
		}
		alternatives, _ := schema["anyOf"].([]any)
		kinds := map[any]bool{}
		for _, alternative := range alternatives {
			schema := alternative.(map[string]any)
			if reference, ok := schema["$ref"].(string); ok {
				schema = definition(t, strings.TrimPrefix(reference, "#"))
			}
			if schema["type"] == nil || kinds[schema["type"]] {
				t.Errorf("%s must have one alternative for each kind of value", pointer)
			}
			kinds[schema["type"]] = true
		}
	})
}

// TestWalkRefusesWhatTheSchemaRefuses checks that schemaChecker and the schema library reject the
// same files. It uses all cases, and files with one violation or none.
func TestWalkRefusesWhatTheSchemaRefuses(t *testing.T) {
	inputs, err := filepath.Glob("testdata/parse/*/input.yml")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string][]byte{}
	for _, input := range inputs {
		sources[input] = read(t, input)
	}
	for _, wrong := range []string{
		"instances: 0", "instances: 1048577", "instances: 1.5", "blocking: 1", "isolation: x", "with: []", "unknown: 1", `new: ""`, "new: 1", "key: a..b",
		"log: {}", `log: {path: ""}`, "restart: {}", "restart: x", "restart: []", "restart: {jitter: 1.5}", "restart: {delay: 1}", "memory: 1",
		"route: {range: {offset: 0}}", "raft: {peers: {}}", "raft: {peers: {a b: x}}", `raft: {peers: {a: ""}}`, "trust_domain: " + strings.Repeat("a", 256),
		"placement: x", "placement: {}", "placement: {nod: n1}", "placement: {node: []}", "checkpoint: x", "checkpoint: {every: 1}", "checkpoint: {copies: 0}",
	} {
		sources[wrong] = []byte("version: 1\nname: wrong\nprocessors: {a: {" + wrong + "}}\nedges: []\n")
	}
	for _, wrong := range []string{"groups: {g: {processors: []}}", "groups: {g: {processors: [1]}}", "groups: {g-: {processors: [a]}}", "messages: {A: 1}", "pool: []", "x: 1", "output: a", "errors: {path: e}",
		"cluster: {}", "cluster: {nodes: {}}", "cluster: {nodes: {a b: x}}", "cluster: {nodes: {n1: 7}}", "cluster: {nodes: {n1: a}, addresses: x}",
		"cluster: {nodes: {n1: a}, fence: x}", "cluster: {nodes: {n1: a}, etcd: {}}", "cluster: {nodes: {n1: a}, etcd: {endpoints: []}}",
		"cluster: {nodes: {n1: a}, etcd: {endpoints: [a], prefix: a}}", "cluster: {nodes: {n1: a}, etcd: {endpoints: [a], tls: {}}}",
		"cluster: {nodes: {n1: a}, membership: {helpers: 11}}", "cluster: {nodes: {n1: a}, retry: {min: 1}}", "cluster: {nodes: {n1: a}, neighborhood: 0}",
	} {
		sources[wrong] = []byte("version: 1\nname: wrong\nprocessors: {a: {}}\nedges: []\n" + wrong + "\n")
	}
	sources["version: 2"] = []byte("version: 2\nname: wrong\nprocessors: {a: {}}\nedges: []\n")
	refused, accepted := 0, 0
	for input, src := range sources {
		found := newCollector(input)
		s := newSource(src)
		root := document(s, found)
		if root == nil {
			continue
		}
		w := &walker{source: s, found: found, open: map[*yaml.Node]bool{}}
		tree, _ := w.value(root, "", 0)
		if len(found.list) > 0 {
			continue // the walker left values out
		}
		forms := checkSchema(tree, found, &Similar{})
		if edges := tree.field("edges"); edges != nil {
			for _, item := range edges.Value.Items { // the builder reports the other keys
				item.Fields = slices.DeleteFunc(item.Fields[:min(len(item.Fields), 1)], func(f Field) bool { return !strings.Contains(f.Key.Value, "->") })
			}
		}
		err := compiledSchema().Validate(plain(tree))
		if says := len(found.list) > 0 || len(forms) > 0; says != (err != nil) {
			t.Errorf("%s: schemaChecker has %d findings and %d forms, but the error of the library is %v", input, len(found.list), len(forms), err)
		}
		if err != nil {
			refused++
		} else {
			accepted++
		}
	}
	if refused < 20 || accepted < 20 {
		t.Errorf("the library rejects %d cases and accepts %d, want more of both", refused, accepted)
	}
}

// plain returns a value as plain data for the library.
func plain(v *Value) any {
	switch v.Kind {
	case Bool:
		return v.boolean()
	case Int, Float:
		return v.number()
	case String:
		return v.Text
	case List:
		list := []any{}
		for _, item := range v.Items {
			list = append(list, plain(item))
		}
		return list
	case Map:
		fields := map[string]any{}
		for _, f := range v.Fields {
			fields[f.Key.Value] = plain(f.Value)
		}
		return fields
	}
	return nil
}

// TestSchemaOfACorrectFileIsCheap checks that schemaChecker builds no messages without findings.
func TestSchemaOfACorrectFileIsCheap(t *testing.T) {
	const mappings = 1000
	var src strings.Builder
	src.WriteString("version: 1\nname: cheap\nprocessors:\n")
	for i := range mappings {
		fmt.Fprintf(&src, "  p%d: {blocking: true}\n", i)
	}
	src.WriteString("edges: []\n")
	found := newCollector("topology.yml")
	s := newSource([]byte(src.String()))
	w := &walker{source: s, found: found, open: map[*yaml.Node]bool{}}
	tree, _ := w.value(document(s, found), "", 0)
	made := testing.AllocsPerRun(5, func() {
		if forms := checkSchema(tree, found, &Similar{}); len(forms)+len(found.list) > 0 {
			t.Fatal("the file has findings")
		}
	})
	if made > mappings {
		t.Errorf("%.0f allocations for %d mappings", made, mappings)
	}
}

// eachSchema calls f for every schema in a tree.
func eachSchema(pointer string, tree any, f func(pointer string, schema map[string]any)) {
	switch node := tree.(type) {
	case map[string]any:
		f(pointer, node)
		for key, child := range node {
			if key != "examples" && key != "default" && key != "enum" {
				eachSchema(pointer+"/"+escapePointer(key), child, f)
			}
		}
	case []any:
		for i, child := range node {
			eachSchema(fmt.Sprintf("%s/%d", pointer, i), child, f)
		}
	}
}

// validateAt validates a value with a part of the schema.
func validateAt(compiler *jsonschema.Compiler, pointer string, value any) error {
	part, err := compiler.Compile(schemaURL + "#" + pointer)
	if err != nil {
		return err
	}
	return part.Validate(value)
}

func TestSchemaRefersToItselfAlone(t *testing.T) {
	eachSchema("", schemaTree(t), func(pointer string, schema map[string]any) {
		if reference, ok := schema["$ref"].(string); ok && !strings.HasPrefix(reference, "#/$defs/") {
			t.Errorf("%s must not refer to %s", pointer, reference)
		}
	})
	if schemaTree(t).(map[string]any)["$id"] != schemaURL {
		t.Error("the $id of the schema must be schemaURL")
	}
}

// TestMisspelledKeys: a misspelled key of a topology file without findings gives one finding, and
// no finding that only follows from the missing key. The repair of such a finding would remove
// settings that are correct.
func TestMisspelledKeys(t *testing.T) {
	inputs, err := filepath.Glob("testdata/parse/clean-*/input.yml")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no cases", err)
	}
	keys := regexp.MustCompile(`\w+:`)
	misspelled := 0
	for _, input := range append(inputs, "testdata/misspelled.yml") {
		src := string(read(t, input))
		if _, findings := Parse("input.yml", []byte(src)); len(findings) > 0 {
			t.Fatal(input, findings)
		}
		for _, at := range keys.FindAllStringIndex(src, -1) {
			key := src[at[0] : at[1]-1]
			if len(key) < 3 {
				continue
			}
			topology, findings := Parse("input.yml", []byte(src[:at[1]-2]+src[at[1]-1:]))
			checkPromises(t, topology, findings)
			if len(findings) == 0 || !slices.ContainsFunc(findings, func(f finding.Finding) bool {
				return f.Code == finding.UnknownKey && f.Suggestion == didYouMean(key)
			}) {
				continue // a name, or a value
			}
			misspelled++
			if len(findings) > 1 {
				t.Errorf("%s, %s at line %d: %d findings:", input, key, 1+strings.Count(src[:at[0]], "\n"), len(findings))
				for _, f := range findings {
					t.Log(f.Code, f.Message)
				}
			}
		}
	}
	src := strings.Replace(string(read(t, "testdata/misspelled.yml")), "edges:", "links:", 1)
	if _, findings := Parse("input.yml", []byte(src)); len(findings) != 2 || findings[0].Code != finding.MissingKey || findings[1].Code != finding.UnknownKey {
		t.Error("links in place of edges:", findings)
	}
	if misspelled < 100 {
		t.Errorf("only %d keys were misspelled", misspelled)
	}
}
