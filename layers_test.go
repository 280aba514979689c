// Package topogen_test checks what holds for the repository as a whole: which
// package may import which (docs/explanation/architecture.md).
package topogen_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/rerun"
)

const module = "github.com/topogen/topogen/"

// layers maps each part of the repository to the parts that it may import. The
// test fails for a package that belongs to no layer.
var layers = map[string][]string{
	"internal":        {"runtime"},
	"docs/reference":  {},
	"schemas":         {},
	"templates":       {},
	"spec":            {"schemas", "docs/reference"},
	"gen":             {"spec", "schemas", "templates"},
	"cmd/topogen":     {"gen", "spec", "schemas", "templates"},
	"cmd/topogen-vet": {"gen"},
	"cmd/topoctl":     {"runtime"},
	"runtime":         {},
	"examples":        {"runtime"},
}

// testsOnly are folders that hold tests of the whole and may import everything.
var testsOnly = []string{"docs", "generated_test"}

// tiers of the packages below runtime. A package imports its own tier and lower
// tiers. Outside of this repository, tier 0 imports only the standard library and
// xxhash.
var tiers = map[string]int{
	"internal": 0, "topo": 0, "queue": 0, "route": 0, "clock": 0, "graph": 0, "tree": 0, "shard": 0, "piper": 0, "pool": 0,
	"rankedmap": 0, "hexid": 0, "freelist": 0,
	"errtop": 1, "supervise": 1, "wire": 1, "fsm": 1,
	"process": 2, "transport": 2, "raft": 2, "member": 2, "cluster": 2, "durable": 2,
}

// outsideOfTier0 are the modules that tier 0 may use.
var outsideOfTier0 = []string{"github.com/cespare/xxhash/v2"}

func TestImportsRunOneWay(t *testing.T) {
	for pkg, imports := range list(t, "{{.ImportPath}} {{join .Imports \" \"}}", "./...") {
		from, ok := layerOf(pkg)
		if !ok {
			if !slices.Contains(testsOnly, first(pkg)) && pkg != strings.TrimSuffix(module, "/") {
				t.Errorf("%s is in no layer", pkg)
			}
			continue
		}
		for _, imported := range imports {
			to, ok := layerOf(imported)
			if ok && to != from && !slices.Contains(layers[from], to) {
				t.Errorf("%s imports %s, and %s may import %v alone", pkg, imported, from, layers[from])
			}
		}
	}
}

func TestRuntimeHasTiers(t *testing.T) {
	for name := range tiers {
		if _, err := os.Stat(filepath.Join("runtime", name)); err != nil {
			t.Errorf("the table of tiers lists a package that does not exist: %v", err)
		}
	}
	for pkg, imports := range list(t, "{{.ImportPath}} {{join .Imports \" \"}}", "./runtime/...") {
		tier, ok := tierOf(pkg)
		if !ok {
			t.Errorf("%s is in no tier", pkg)
			continue
		}
		for _, imported := range imports {
			if other, ok := tierOf(imported); ok && other > tier {
				t.Errorf("%s, of tier %d, imports %s, of tier %d", pkg, tier, imported, other)
			} else if !ok && tier == 0 && strings.Contains(imported, ".") && !slices.Contains(outsideOfTier0, imported) {
				t.Errorf("%s, of tier 0, imports %s", pkg, imported)
			}
		}
	}
}

// TestLocalTopologyLinksLittle checks which packages a program links. A topology in
// one process links tier 0, a topology with restarts also package supervise, and a
// topology with a state in memory also package fsm. Package process and the wire
// format of protobuf are linked only with isolation: process.
func TestLocalTopologyLinksLittle(t *testing.T) {
	for program, more := range map[string][]string{
		"examples/wordcount":             nil,
		"examples/batch":                 {module + "runtime/supervise"},
		"generated_test/machineexternal": {module + "runtime/fsm"},
	} {
		linked := list(t, "{{if not .Standard}}{{.ImportPath}}{{end}}", "-deps", "./"+program)
		for pkg := range linked {
			tier, ok := tierOf(pkg)
			if (!ok || tier > 0) && !slices.Contains(outsideOfTier0, pkg) && !slices.Contains(more, pkg) && pkg != module+program {
				t.Errorf("%s links %s", program, pkg)
			}
		}
		for _, pkg := range append(more, module+"runtime/piper", module+"runtime/pool") {
			if linked[pkg] == nil {
				t.Errorf("%s does not link %s: it was not generated", program, pkg)
			}
		}
		t.Logf("%s links %s", program, strings.Join(slices.Sorted(maps.Keys(linked)), " "))
	}
}

// TestOnlyDurableTopologiesLinkAStore checks that a program links the store of durable promises
// if and only if it has a durable edge, the server only with listen, and raft only with a store
// on several nodes.
func TestOnlyDurableTopologiesLinkAStore(t *testing.T) {
	// etcd's log links prometheus too.
	const store, prometheus = "go.etcd.io/bbolt", "github.com/prometheus/client_golang/prometheus"
	for program, want := range map[string]struct{ store, server, raft bool }{
		"generated_test/external": {},
		"generated_test/durable":  {store: true},

		"generated_test/durablelisten": {store: true, server: true},
		"generated_test/durablenodes":  {store: true, raft: true},
	} {
		linked := list(t, "{{if not .Standard}}{{.ImportPath}}{{end}}", "-deps", "./"+program)
		for pkg, want := range map[string]bool{store: want.store, module + "runtime/durable": want.store, module + "runtime/durable/server": want.server, prometheus: want.server || want.raft, module + "runtime/durable/replicated": want.raft, module + "runtime/raft": want.raft} {
			if got := linked[pkg] != nil; got != want {
				t.Errorf("%s links %s: %v, want %v", program, pkg, got, want)
			}
		}
		if linked[module+"runtime/piper"] == nil {
			t.Errorf("%s does not link runtime/piper: it was not generated", program)
		}
	}
}

// engines are the modules that a log on disk and a group of nodes need.
var engines = []string{"go.etcd.io/", "google.golang.org/grpc", "google.golang.org/protobuf", "go.uber.org/zap"}

// TestCompilerLinksNoEngine checks that the compiler, which generates code for state
// machines, links neither etcd's engines nor package raft.
func TestCompilerLinksNoEngine(t *testing.T) {
	linked := list(t, "{{.ImportPath}}", "-deps", "./cmd/topogen")
	for pkg := range linked {
		if slices.ContainsFunc(engines, func(e string) bool { return strings.HasPrefix(pkg, e) }) || strings.HasPrefix(pkg, module+"runtime/raft") {
			t.Errorf("cmd/topogen links %s", pkg)
		}
	}
	if linked[module+"gen/emit"] == nil {
		t.Error("cmd/topogen does not link gen/emit: go list printed another program")
	}
}

// TestDefaultDetectorLinksNoLibrary checks that only detector: memberlist links
// hashicorp/memberlist.
func TestDefaultDetectorLinksNoLibrary(t *testing.T) {
	linked := list(t, "{{.ImportPath}}", "-deps", "./runtime/member")
	for pkg := range linked {
		if strings.HasPrefix(pkg, "github.com/hashicorp/") {
			t.Errorf("runtime/member links %s", pkg)
		}
	}
	if linked[module+"runtime/transport"] == nil {
		t.Error("runtime/member does not link runtime/transport: go list printed another program")
	}
}

// list runs go list and returns the words of each line by its first word.
func list(t *testing.T, format string, args ...string) map[string][]string {
	t.Helper()
	rerun.WhenCodeChanges(t, "docs", "examples", "generated_test", "internal")
	cmd := exec.Command("go", append([]string{"list", "-f", format}, args...)...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, failure.String())
	}
	words := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			words[fields[0]] = fields
		}
	}
	return words
}

// layerOf is the part of the repository that a package belongs to.
func layerOf(pkg string) (layer string, ok bool) {
	path, ok := strings.CutPrefix(pkg, module)
	if !ok {
		return "", false
	}
	for layer := range layers {
		if path == layer || strings.HasPrefix(path, layer+"/") {
			return layer, true
		}
	}
	return "", false
}

// tierOf is the tier of a package of the runtime.
func tierOf(pkg string) (tier int, ok bool) {
	path, ok := strings.CutPrefix(pkg, module+"runtime/")
	if !ok {
		return 0, false
	}
	tier, ok = tiers[strings.Split(path, "/")[0]]
	return tier, ok
}

func first(pkg string) string {
	return strings.Split(strings.TrimPrefix(pkg, module), "/")[0]
}
