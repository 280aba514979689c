package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// layers maps each part of the repository to the parts that it may import.
var layers = map[string][]string{
	"internal/cmd":    {},
	"internal/test":   {"runtime"},
	"schemas":         {},
	"templates":       {},
	"spec":            {"schemas"},
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

// rooms maps the package that runs instances, and each package below it, to those of them that
// it may import.
var rooms = map[string][]string{
	"runtime/piper":           {"runtime/piper/placement"},
	"runtime/piper/placement": {},
	"runtime/piper/border":    {"runtime/piper"},
}

// outsideOfTier0 are the modules that tier 0 may use.
var outsideOfTier0 = []string{"github.com/cespare/xxhash/v2"}

// ownPackage is the folder of this command, for findings about its tables.
const ownPackage = "internal/cmd/lint"

// tables is the file with the tables above.
const tables = ownPackage + "/imports.go"

// imports finds imports against the direction of the layers
// (docs/explanation/how-it-works.md), of the tiers of the runtime and of the rooms.
func imports(r *repo) ([]finding, error) {
	g, err := r.graph()
	if err != nil {
		return nil, err
	}
	for pkg := range g {
		if strings.HasPrefix(pkg, module+"/") {
			r.count(1)
		}
	}
	return slices.Concat(wrongLayers(g), wrongTiers(g), wrongRooms(g)), nil
}

func wrongLayers(g graph) (found []finding) {
	for pkg, imported := range g {
		folder, ok := strings.CutPrefix(pkg, module+"/")
		if !ok {
			continue
		}
		from, ok := layerOf(pkg)
		if !ok {
			if first, _, _ := strings.Cut(folder, "/"); !slices.Contains(testsOnly, first) {
				found = append(found, finding{folder, 0, "the package is in no layer: add it to layers in " + tables})
			}
			continue
		}
		for _, other := range imported {
			to, ok := layerOf(other)
			if ok && to != from && !slices.Contains(layers[from], to) {
				found = append(found, finding{folder, 0, fmt.Sprintf("remove the import of %s: %s may import %v alone", other, from, layers[from])})
			}
		}
	}
	return found
}

func wrongTiers(g graph) (found []finding) {
	seen := make(map[string]bool)
	for pkg, imported := range g {
		folder, ok := strings.CutPrefix(pkg, module+"/runtime/")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(folder, "/")
		seen[name] = true
		folder = "runtime/" + folder
		tier, ok := tiers[name]
		if !ok {
			found = append(found, finding{folder, 0, "the package is in no tier: add it to tiers in " + tables})
			continue
		}
		for _, other := range imported {
			if upper, ok := tierOf(other); ok && upper > tier {
				found = append(found, finding{folder, 0, fmt.Sprintf("remove the import of %s of tier %d: the package is in tier %d", other, upper, tier)})
			} else if !ok && tier == 0 && !isStandard(other) && !slices.Contains(outsideOfTier0, other) {
				found = append(found, finding{folder, 0, fmt.Sprintf("remove the import of %s: tier 0 imports only the standard library and %v", other, outsideOfTier0)})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tiers)) {
		if !seen[name] {
			found = append(found, finding{"runtime/" + name, 0, "the package does not exist: remove it from tiers in " + tables})
		}
	}
	return found
}

func wrongRooms(g graph) (found []finding) {
	isRoom := func(path string) bool { return path == "runtime/piper" || strings.HasPrefix(path, "runtime/piper/") }
	for pkg, imported := range g {
		folder := strings.TrimPrefix(pkg, module+"/")
		if !isRoom(folder) {
			continue
		}
		may, ok := rooms[folder]
		if !ok {
			found = append(found, finding{folder, 0, "the package is not in the table of rooms: add it to rooms in " + tables})
			continue
		}
		for _, other := range imported {
			if to := strings.TrimPrefix(other, module+"/"); isRoom(to) && !slices.Contains(may, to) {
				found = append(found, finding{folder, 0, fmt.Sprintf("remove the import of %s: of runtime/piper, the package may import %v alone", other, may)})
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(rooms)) {
		if _, ok := g[module+"/"+folder]; !ok {
			found = append(found, finding{folder, 0, "the package does not exist: remove it from rooms in " + tables})
		}
	}
	return found
}

// layerOf is the part of the repository that a package belongs to.
func layerOf(pkg string) (layer string, ok bool) {
	path, ok := strings.CutPrefix(pkg, module+"/")
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
	path, ok := strings.CutPrefix(pkg, module+"/runtime/")
	if !ok {
		return 0, false
	}
	name, _, _ := strings.Cut(path, "/")
	tier, ok = tiers[name]
	return tier, ok
}
