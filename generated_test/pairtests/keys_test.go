package pairtests_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/topogen/topogen/gen/bind"
	"github.com/topogen/topogen/gen/emit"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// otherwise has the keys whose value TestEveryKeyReachesTheCode cannot change, with the reason.
var otherwise = map[string]string{
	"topology.version":     "it has one value",
	"placement.role":       "reserved: topogen reports it",
	"processor.checkpoint": "reserved: topogen reports it",
	"edge.id":              fieldOfGo,
	"edge.key":             fieldOfGo,
	"limit.per":            fieldOfGo,
	"processor.key":        fieldOfGo,
	"route.id":             fieldOfGo,
	"route.node":           fieldOfGo,
	"processor.kind":       "another value needs other Go: generated_test/machine and machineraft",
	"processor.controller": "another value needs other Go: generated_test/machine",
	"processor.tls":        "the golden case of kind raft is insecure; raft.tls is the same",
	"topology.package":     "it is for a folder without Go: gen/bind TestAnotherPackage",
	"processor.transport":  "another value needs other Go: generated_test/machineraft",
	"processor.revert":     "another value needs other Go: generated_test/machine",
	"processor.new":        "another value needs other Go: generated_test/construct",
	"processor.with":       "another value needs other Go: generated_test/construct",
	"processor.route":      "another value needs other Go: generated_test/machinegroups",
	"store.raft":           "another value needs other Go: generated_test/durablenodes",
	"edge.durable":         "another value needs other Go: generated_test/durable",
	"edge.shared":          "depends on the types of messages: generated_test/ownership",
}

// fieldOfGo is the reason for keys that name a field or a method: the code that reads it follows from
// its Go type.
const fieldOfGo = "it names a field of a Go type: golden cases"

// TestEveryKeyReachesTheCode sets or changes the value of each key of the schema in golden cases. The
// generated code must change too, apart from its hashes. A key that is read and then forgotten changes
// nothing. Packages of the runtime test that the generated code has an effect (package effects).
func TestEveryKeyReachesTheCode(t *testing.T) {
	rerun.WhenCodeChanges(t, "generated_test")
	var schema map[string]any
	if err := json.Unmarshal(schemas.Topology, &schema); err != nil {
		t.Fatal(err)
	}
	cases := readGolden(t)
	variants, refused, tried := make(map[string][]variant), make(map[string][]string), make(map[string]int)
	for _, missing := range []bool{false, true} {
		for _, g := range cases {
			g.find(schema, schema, "topology", g.document.Content[0], func(key string, p keyPlace) {
				if otherwise[key] == "" && p.missing() == missing && len(variants[key]) < variantsMax && tried[key] < placesMax {
					found, no, fits := g.variants(p)
					if fits {
						tried[key]++
					}
					variants[key], refused[key] = append(variants[key], found...), append(refused[key], no...)
				}
			})
		}
	}
	bindGolden(t, cases, variants)
	declared := make(keys)
	declared.all(schema, schema, "topology")
	for _, key := range slices.Sorted(maps.Keys(declared)) {
		switch {
		case strings.Contains(key, "=") || otherwise[key] != "":
		case len(variants[key]) == 0:
			t.Errorf("%s: no value changes the plan: %s", key, strings.Join(refused[key][:min(len(refused[key]), 20)], "\n\t"))
		case !slices.ContainsFunc(variants[key], func(v variant) bool { return v.changes(t) }):
			t.Errorf("%s changes the plan and not the generated code: %v", key, variants[key])
		}
	}
	for key := range otherwise {
		if !declared[key] {
			t.Errorf("the schema does not have %s, which is in otherwise", key)
		}
	}
}

// variantsMax is how many changes of a key are tried. A key may change the plan and not the code, as
// the delay before a second attempt if there is none.
const variantsMax = 2

// placesMax is in how many places a change of a key is tried. Most keys need one.
const placesMax = 8

// golden is the topology of a golden case.
type golden struct {
	file     string
	document yaml.Node
	topology *spec.Topology
	hash     [32]byte // of the plan
	names    []string
	bound    *bind.Result // nil: it is not needed
	code     string       // what is generated from it
}

// variant is a golden case in which the value of a key differs.
type variant struct {
	golden   *golden
	topology *spec.Topology
	text     string
}

func (v variant) String() string {
	return filepath.Base(filepath.Dir(v.golden.file)) + " with " + v.text
}

// keyPlace is a key in a topology file, or a mapping that may have it.
type keyPlace struct {
	parent *yaml.Node
	name   string
	at     int            // index of the value in the parent; its end if the key is missing
	schema map[string]any // of the value
}

func (p keyPlace) missing() bool { return p.at > len(p.parent.Content) }

// readGolden reads the golden cases that are valid, small ones first because they are generated faster.
func readGolden(t *testing.T) (cases []*golden) {
	t.Helper()
	files, err := filepath.Glob("../*/topology.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file, err = filepath.Abs(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		g := &golden{file: file}
		if err := yaml.Unmarshal(text, &g.document); err != nil {
			t.Fatal(err)
		}
		if g.topology, g.hash, err = outline(file, text); err != nil {
			t.Fatal(err)
		}
		for _, p := range g.topology.Processors {
			g.names = append(g.names, p.Name.Value)
		}
		cases = append(cases, g)
	}
	slices.SortStableFunc(cases, func(a, b *golden) int { return len(a.names) - len(b.names) })
	return cases
}

// outline reads a topology and plans it, without its Go.
func outline(file string, text []byte) (*spec.Topology, [32]byte, error) {
	topology, findings := spec.Parse(file, text)
	if finding.HasErrors(findings) {
		return nil, [32]byte{}, fmt.Errorf("%s", findings[0].Message)
	}
	p, findings := plan.Outline(topology, plan.Package{Name: "p", Path: "p"})
	if finding.HasErrors(findings) {
		return nil, [32]byte{}, fmt.Errorf("%s", findings[0].Message)
	}
	return topology, plan.Hash(p), nil
}

// find calls found for each key that a part of a topology file has or could have.
func (g *golden) find(schema map[string]any, part any, path string, file *yaml.Node, found func(key string, p keyPlace)) {
	node, path := resolve(schema, part, path)
	for _, one := range list(node["anyOf"]) {
		g.find(schema, one, path, file, found)
	}
	switch file.Kind {
	case yaml.SequenceNode:
		for _, item := range file.Content {
			if node["items"] != nil {
				g.find(schema, node["items"], path, item, found)
			}
		}
	case yaml.MappingNode:
		missing := maps.Clone(mapping(node["properties"]))
		for i := 0; i < len(file.Content); i += 2 {
			name, value := file.Content[i].Value, file.Content[i+1]
			if of, ok := missing[name]; ok {
				delete(missing, name)
				resolved, _ := resolve(schema, of, "")
				found(path+"."+name, keyPlace{file, name, i + 1, resolved})
				g.find(schema, of, path+"."+name, value, found)
			} else if of := otherProperty(node, name); of != nil {
				g.find(schema, of, path, value, found)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(missing)) {
			resolved, _ := resolve(schema, missing[name], "")
			found(path+"."+name, keyPlace{file, name, len(file.Content) + 1, resolved})
		}
	}
}

// variants sets other values, and returns the first topology with another plan. refused says why there
// are no others. fits is false if the place cannot have the key.
func (g *golden) variants(p keyPlace) (found []variant, refused []string, fits bool) {
	before := p.parent.Content
	defer func() { p.parent.Content = before }()
	value := new(yaml.Node)
	if !p.missing() {
		value = before[p.at]
	}
	for _, other := range g.others(p.schema, value) {
		p.parent.Content = slices.Clone(before)
		if p.missing() {
			p.parent.Content = append(p.parent.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: p.name}, nil)
		}
		p.parent.Content[p.at] = other
		text, err := yaml.Marshal(&g.document)
		if err != nil {
			refused = append(refused, err.Error())
			continue
		}
		topology, hash, err := outline(g.file, text)
		if err == nil && hash != g.hash {
			setting, _ := yaml.Marshal(other)
			return []variant{{g, topology, p.name + ": " + strings.TrimSpace(string(setting))}}, nil, true
		}
		if err != nil && (strings.Contains(err.Error(), "must not have") || strings.Contains(err.Error(), "must go with") || strings.Contains(err.Error(), p.name+" has no effect")) {
			return nil, append(refused, err.Error()), false
		}
		refused = append(refused, fmt.Sprintf("%s: %q: %v", filepath.Base(filepath.Dir(g.file)), other.Value, err))
	}
	return nil, refused, true
}

// others are other values of a key. Values of a wrong type are among them: package spec refuses these.
func (g *golden) others(schema map[string]any, value *yaml.Node) (nodes []*yaml.Node) {
	for i, inner := range value.Content {
		if value.Kind == yaml.MappingNode && i%2 == 0 {
			continue // a key
		}
		for _, other := range g.others(nil, inner) {
			changed := *value
			changed.Content = slices.Clone(value.Content)
			changed.Content[i] = other
			nodes = append(nodes, &changed)
		}
	}
	if len(nodes) > 0 {
		return nodes
	}
	var texts []string
	for _, one := range append(list(schema["anyOf"]), any(schema)) {
		for _, v := range list(mapping(one)["enum"]) {
			texts = append(texts, v.(string))
		}
		for _, v := range list(mapping(one)["examples"]) {
			example := new(yaml.Node)
			if example.Encode(v) == nil {
				nodes = append(nodes, example)
			}
		}
	}
	if n, err := strconv.Atoi(value.Value); err == nil {
		texts = append(texts, strconv.Itoa(n+1), strconv.Itoa(n/2))
	}
	texts = append(texts, "true", "false", "7s", "20ms", "3", "0.125", "32MiB", "3/s", "127.0.0.1:9", "other", "other_gen.go", value.Value+"x", "x"+value.Value)
	for _, text := range append(texts, g.names...) {
		if text != value.Value {
			nodes = append(nodes, &yaml.Node{Kind: yaml.ScalarNode, Value: text})
		}
	}
	return nodes
}

// bindGolden binds the cases that have variants to their Go, and generates their code.
func bindGolden(t *testing.T, cases []*golden, variants map[string][]variant) {
	t.Helper()
	var needed []*golden
	var inputs []bind.Input
	var options bind.Options
	for _, g := range cases {
		for _, list := range variants {
			if slices.ContainsFunc(list, func(v variant) bool { return v.golden == g }) {
				needed, inputs = append(needed, g), append(inputs, bind.Input{Topology: g.topology})
				options.Imports = append(options.Imports, emit.Imports(g.topology)...)
				break
			}
		}
	}
	slices.Sort(options.Imports)
	options.Imports = slices.Compact(options.Imports)
	options.Bound = func(i int, r *bind.Result) {
		g, err := needed[i], error(nil)
		g.bound = r
		if g.code, err = g.emit(g.topology); err != nil {
			t.Error(g.file, err)
		}
	}
	if _, err := bind.Bind(t.Context(), inputs, options); err != nil {
		t.Fatal(err)
	}
}

// hashes are the hashes of the plan in the generated code. They change with each key.
var hashes = regexp.MustCompile(`[0-9a-f]{16}`)

// emit generates the code of a topology that differs from the golden case in the value of a key.
func (g *golden) emit(topology *spec.Topology) (string, error) {
	o := g.bound.Outline
	p, _ := plan.Outline(topology, plan.Package{Name: o.Package, Path: o.ImportPath, Constraint: o.Constraint})
	if len(p.Processors) != len(o.Processors) || len(p.Edges) != len(o.Edges) {
		return "", fmt.Errorf("it has other processors or edges")
	}
	files, err := emit.Emit(plan.Complete(p, g.bound.Facts), emit.Options{
		Wiring: true, Imports: emit.Imports(topology), Declared: g.bound.Declares(), Imported: g.bound.Imports(), Schema: g.bound.Schema(),
	})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, f := range files {
		text.WriteString(f.Name)
		for _, part := range f.Parts {
			text.Write(hashes.ReplaceAll(part, nil))
		}
	}
	return text.String(), nil
}

// changes reports whether the generated code of a variant differs from the golden case.
func (v variant) changes(t *testing.T) bool {
	defer func() {
		if cause := recover(); cause != nil {
			t.Errorf("%v: %v", v, cause)
		}
	}()
	code, err := v.golden.emit(v.topology)
	if err != nil {
		t.Logf("%v: %v", v, err)
	}
	return err == nil && code != v.golden.code
}
