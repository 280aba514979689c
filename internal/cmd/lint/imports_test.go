package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// read reads a graph: each line has a package and its imports. Packages of this module
// begin with a dot.
func read(text string) graph {
	g := make(graph)
	for line := range strings.Lines(strings.ReplaceAll(text, "./", module+"/")) {
		if words := strings.Fields(line); len(words) > 0 {
			g[words[0]] = words[1:]
		}
	}
	return g
}

// wantFindings compares findings, which are sorted.
func wantFindings(t *testing.T, found []finding, want ...string) {
	t.Helper()
	var got []string
	for _, f := range found {
		got = append(got, strings.ReplaceAll(fmt.Sprint(f), module, "."))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLayers(t *testing.T) {
	g := read(`
		./spec ./schemas fmt
		./gen/emit ./spec ./runtime/topo
		./runtime/raft ./gen
		./generated_test/a ./gen ./runtime/raft
		./tools/x
		fmt`)
	wantFindings(t, wrongLayers(g),
		"gen/emit: remove the import of ./runtime/topo: gen may import [spec schemas templates] alone",
		"runtime/raft: remove the import of ./gen: runtime may import [] alone",
		"tools/x: the package is in no layer: add it to layers in internal/cmd/lint/imports.go",
	)
}

func TestTiers(t *testing.T) {
	var all strings.Builder
	for name := range tiers {
		if name != "clock" {
			fmt.Fprintln(&all, "./runtime/"+name)
		}
	}
	g := read(all.String() + `
		./runtime/queue fmt vendor/golang.org/x/net ./runtime/topo github.com/cespare/xxhash/v2
		./runtime/pool/inner ./runtime/fsm
		./runtime/graph gopkg.in/yaml.v3
		./runtime/raft ./runtime/fsm go.etcd.io/raft/v3
		./runtime/new`)
	wantFindings(t, wrongTiers(g),
		"runtime/clock: the package does not exist: remove it from tiers in internal/cmd/lint/imports.go",
		"runtime/graph: remove the import of gopkg.in/yaml.v3: tier 0 imports only the standard library and [github.com/cespare/xxhash/v2]",
		"runtime/new: the package is in no tier: add it to tiers in internal/cmd/lint/imports.go",
		"runtime/pool/inner: remove the import of ./runtime/fsm of tier 1: the package is in tier 0",
	)
}

func TestRooms(t *testing.T) {
	g := read(`
		./runtime/piper ./runtime/piper/placement ./runtime/piper/border fmt
		./runtime/piper/placement ./runtime/piper
		./runtime/piper/new ./runtime/piper
		./runtime/cluster ./runtime/piper/border`)
	wantFindings(t, wrongRooms(g),
		"runtime/piper/border: the package does not exist: remove it from rooms in internal/cmd/lint/imports.go",
		"runtime/piper/new: the package is not in the table of rooms: add it to rooms in internal/cmd/lint/imports.go",
		"runtime/piper/placement: remove the import of ./runtime/piper: of runtime/piper, the package may import [] alone",
		"runtime/piper: remove the import of ./runtime/piper/border: of runtime/piper, the package may import [runtime/piper/placement] alone",
	)
}

func TestLinked(t *testing.T) {
	g := read(`
		./examples/a ./runtime/pool ./runtime/queue
		./runtime/pool ./runtime/piper
		./runtime/piper fmt vendor/golang.org/x/net github.com/cespare/xxhash/v2
		./examples/b ./runtime/pool ./runtime/raft
		./runtime/raft go.etcd.io/raft/v3
		./examples/c ./runtime/pool ./runtime/piper/border`)
	wantFindings(t, wrongLocal(g, "examples/a", nil))
	wantFindings(t, wrongLocal(g, "examples/c", nil), "examples/c: the program must not link ./runtime/piper/border: it runs in one process")
	wantFindings(t, wrongLocal(g, "examples/b", []string{runtimePath + "fsm"}),
		"examples/b: the program must link ./runtime/fsm: generate it",
		"examples/b: the program must not link ./runtime/raft: it runs in one process",
		"examples/b: the program must not link go.etcd.io/raft/v3: it runs in one process",
	)
	wantFindings(t, wrongLinks(g, linkRule{"examples/b", []string{runtimePath + "pool"}, []string{"go.etcd.io/bbolt"}, "it has no log"}))
	wantFindings(t, wrongLinks(g, linkRule{"examples/b", []string{runtimePath + "wire"}, []string{runtimePath + "raft", "go.etcd.io/*"}, "it has no log"}),
		"examples/b: the program must link ./runtime/wire, or the rule in internal/cmd/lint/linked.go is about another program",
		"examples/b: the program must not link ./runtime/raft: it has no log",
		"examples/b: the program must not link go.etcd.io/raft/v3: it has no log",
	)
}
