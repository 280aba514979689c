package main

import (
	"fmt"
	"slices"
	"strings"
)

// Packages of the runtime, and libraries, that only some programs link.
const (
	runtimePath = module + "/runtime/"
	borderPath  = runtimePath + "piper/border"
	bboltPath   = "go.etcd.io/bbolt"
	metricsPath = "github.com/prometheus/client_golang/prometheus" // etcd's log links it too
)

// local are the programs of one process. They link tier 0, xxhash and these packages, and no
// other package outside of the standard library.
var local = map[string][]string{
	"examples/wordcount":             nil,
	"examples/batch":                 {runtimePath + "supervise"},
	"generated_test/machineexternal": {runtimePath + "fsm"},
}

// A linkRule says what a program links and what it does not. An entry that ends in * is the
// beginning of package paths.
type linkRule struct {
	program string
	must    []string
	never   []string
	why     string
}

var (
	store  = []string{bboltPath, runtimePath + "durable"}
	server = []string{runtimePath + "durable/server"}
	raft   = []string{runtimePath + "durable/replicated", runtimePath + "raft"}
)

var linkRules = []linkRule{
	{"generated_test/external", []string{runtimePath + "piper"}, join(store, server, raft, []string{metricsPath}), "it has no durable edge"},
	{"generated_test/durable", join(store, []string{runtimePath + "piper"}), join(server, raft, []string{metricsPath}), "its store is in its own process"},
	{"generated_test/durablelisten", join(store, server, []string{metricsPath, runtimePath + "piper"}), raft, "its store is on one node"},
	{"generated_test/durablenodes", join(store, raft, []string{metricsPath, runtimePath + "piper"}), server, "its store does not listen"},
	{"cmd/topogen", []string{module + "/gen/emit"}, []string{"go.etcd.io/*", "google.golang.org/grpc*", "google.golang.org/protobuf*", "go.uber.org/zap*", runtimePath + "raft*"}, "the compiler needs no engine"},
	{"runtime/member", []string{runtimePath + "transport"}, []string{"github.com/hashicorp/*"}, "only detector: memberlist needs the library"},
}

// linked finds packages that a program links without need. A topology in one process links
// tier 0, a topology with restarts also package supervise, and a topology with a state in
// memory also package fsm. A topology links the store of durable promises only with a durable
// edge, the server only with listen, and raft only with a store on several nodes.
func linked(r *repo) (found []finding, err error) {
	g, err := r.graph()
	if err != nil {
		return nil, err
	}
	for program, more := range local {
		r.count(len(g[module+"/"+program]))
		r.note("%s links %d packages", program, len(g.closure(module+"/"+program)))
		found = append(found, wrongLocal(g, program, more)...)
	}
	for _, rule := range linkRules {
		found = append(found, wrongLinks(g, rule)...)
	}
	return found, nil
}

func wrongLocal(g graph, program string, more []string) (found []finding) {
	all := g.closure(module + "/" + program)
	for pkg := range all {
		tier, ok := tierOf(pkg)
		allowed := ok && tier == 0 && pkg != borderPath || isStandard(pkg) || slices.Contains(outsideOfTier0, pkg) || slices.Contains(more, pkg) || pkg == module+"/"+program
		if !allowed {
			found = append(found, finding{program, 0, fmt.Sprintf("the program must not link %s: it runs in one process", pkg)})
		}
	}
	for _, pkg := range append([]string{runtimePath + "piper", runtimePath + "pool"}, more...) {
		if !all[pkg] {
			found = append(found, finding{program, 0, fmt.Sprintf("the program must link %s: generate it", pkg)})
		}
	}
	return found
}

func wrongLinks(g graph, rule linkRule) (found []finding) {
	all := g.closure(module + "/" + rule.program)
	for pkg := range all {
		if slices.ContainsFunc(rule.never, func(never string) bool {
			prefix, isPrefix := strings.CutSuffix(never, "*")
			return pkg == never || isPrefix && strings.HasPrefix(pkg, prefix)
		}) {
			found = append(found, finding{rule.program, 0, fmt.Sprintf("the program must not link %s: %s", pkg, rule.why)})
		}
	}
	for _, pkg := range rule.must {
		if !all[pkg] {
			found = append(found, finding{rule.program, 0, fmt.Sprintf("the program must link %s, or the rule in internal/cmd/lint/linked.go is about another program", pkg)})
		}
	}
	return found
}

// isStandard reports whether a package is part of Go. Paths of other packages begin with a
// domain.
func isStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}

func join(lists ...[]string) []string { return slices.Concat(lists...) }
