package pairtests_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/topogen/topogen/schemas"
)

// elsewhere has the keys and values of the schema that no topology of this package has, with the
// reason. An entry for a key also covers all keys below it.
var elsewhere = map[string]string{
	"topology.cluster.etcd":           "needs etcd: generated_test/clusteretcd and bench/addresses",
	"topology.cluster.addresses=etcd": "needs etcd",
	"topology.cluster.tls":            "of the transport, which is in memory here: generated_test/nodetests",
	"topology.cluster.trust_domain":   "of the transport",
	"topology.cluster.insecure":       "of the transport",
	"topology.cluster.dir":            "an option of New",
	"topology.cluster.rebalance=load": "reserved: topogen reports it",
	"placement.role":                  "reserved: topogen reports it",
	"processor.kind=raft":             "only the consensus, without a state: generated_test/machineraft and runtime/raft",
	"processor.group":                 "of kind raft",
	"processor.peers":                 "of kind raft",
	"processor.election_timeout":      "of kind raft",
	"processor.heartbeat":             "of kind raft",
	"processor.transport":             "of kind raft",
	"processor.insecure":              "of kind raft",
	"processor.tls":                   "of kind raft",
	"processor.trust_domain":          "of kind raft",
	"topology.durable.listen":         "several processes: generated_test/durabletests",
	"topology.durable.insecure":       "of listen",
	"topology.durable.tls":            "of listen",
	"store.raft":                      "several processes: generated_test/durabletests",
	"processor.checkpoint":            "reserved: topogen reports it",
	"route=caller":                    "reserved: topogen reports it",
	"topology.errors.crash":           "ends the process at the first failure",
	"topology.package":                "a name in generated code",
	"topology.output":                 "a name in generated code",
}

// keys is a set of keys of the topology file, such as "edge.full", and of values, such as
// "edge.full=block". A key begins with the name of the definition in the schema that contains it.
type keys map[string]bool

// all adds all keys and values of a part of the schema.
func (k keys) all(schema map[string]any, part any, path string) {
	node, path := resolve(schema, part, path)
	for _, v := range list(node["enum"]) {
		k[path+"="+v.(string)] = true
	}
	for name, of := range mapping(node["properties"]) {
		key := path + "." + name
		if k[key] = true; elsewhere[key] == "" {
			k.all(schema, of, key)
		}
	}
	more := append(list(node["anyOf"]), slices.Collect(maps.Values(mapping(node["patternProperties"])))...)
	for _, of := range append(more, node["additionalProperties"], node["items"]) {
		if of, ok := of.(map[string]any); ok {
			k.all(schema, of, path)
		}
	}
}

// used adds the keys and values that a part of a topology file has.
func (k keys) used(schema map[string]any, part any, path string, file any) {
	node, path := resolve(schema, part, path)
	for _, one := range list(node["anyOf"]) {
		k.used(schema, one, path, file)
	}
	switch file := file.(type) {
	case string:
		if slices.Contains(list(node["enum"]), any(file)) {
			k[path+"="+file] = true
		}
	case []any:
		for _, item := range file {
			if node["items"] != nil {
				k.used(schema, node["items"], path, item)
			}
		}
	case map[string]any:
		for name, value := range file {
			if of, ok := mapping(node["properties"])[name]; ok {
				k[path+"."+name] = true
				k.used(schema, of, path+"."+name, value)
			} else if of := otherProperty(node, name); of != nil {
				k.used(schema, of, path, value)
			}
		}
	}
}

// otherProperty returns the part of the schema for keys that it does not list, such as names.
func otherProperty(node map[string]any, name string) any {
	for pattern, of := range mapping(node["patternProperties"]) {
		if regexp.MustCompile(pattern).MatchString(name) {
			return of
		}
	}
	if of, ok := node["additionalProperties"].(map[string]any); ok {
		return of
	}
	return nil
}

// resolve follows a reference in the schema. The path of a definition is its name.
func resolve(schema map[string]any, part any, path string) (map[string]any, string) {
	node := mapping(part)
	for {
		ref, ok := node["$ref"].(string)
		if !ok {
			return node, path
		}
		path = strings.TrimPrefix(ref, "#/$defs/")
		node = mapping(mapping(schema["$defs"])[path])
	}
}

func mapping(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any             { l, _ := v.([]any); return l }

// TestEveryKeyHasARow compares the keys and values of the schema with those of the topologies.
func TestEveryKeyHasARow(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(schemas.Topology, &schema); err != nil {
		t.Fatal(err)
	}
	declared, used := make(keys), make(keys)
	declared.all(schema, schema, "topology")
	for _, r := range append(oneProcess.coveringArray(t, 1), severalNodes.coveringArray(t, 1)...) {
		var file map[string]any
		if err := yaml.Unmarshal([]byte(r.yaml("pairs")), &file); err != nil {
			t.Fatal(err)
		}
		used.used(schema, schema, "topology", file)
	}
	for _, key := range slices.Sorted(maps.Keys(declared)) {
		switch _, ok := elsewhere[key]; {
		case used[key] && ok:
			t.Errorf("topologies have %s: remove it from elsewhere", key)
		case !used[key] && !ok:
			t.Errorf("no topology has %s: add a factor, or say in elsewhere why not", key)
		}
	}
	for key := range elsewhere {
		if !declared[key] {
			t.Errorf("the schema does not have %s, which is in elsewhere", key)
		}
	}
}
