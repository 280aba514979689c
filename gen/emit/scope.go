package emit

import (
	"go/token"
	"path"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// Packages of the runtime that generated code imports.
const (
	runtimePath   = "github.com/topogen/topogen/runtime/"
	processPath   = runtimePath + "process"
	walPath       = plan.Raft + "/wal"
	wirePath      = runtimePath + "wire"
	poolPath      = runtimePath + "pool"
	piperPath     = runtimePath + "piper"
	errtopPath    = runtimePath + "errtop"
	graphPath     = runtimePath + "graph"
	queuePath     = runtimePath + "queue"
	supervisePath = runtimePath + "supervise"
	routePath     = runtimePath + "route"
	topoPath      = runtimePath + "topo"
)

// imported are the packages that the output may import for any topology.
var imported = []string{"context", "slices", "strconv", "time", errtopPath, graphPath, piperPath, poolPath, queuePath, routePath, supervisePath, topoPath}

// Imports lists the packages that the generated files may import, without the packages
// of the Go types that t names.
func Imports(t *spec.Topology) []string {
	list := slices.Clone(imported)
	if t.Cluster != nil {
		list = append(list, clusterImports(t.Cluster)...)
	}
	list = append(list, durableImports(t)...)
	for _, p := range t.Processors {
		if p.Isolation == spec.Process {
			list = append(list, processPath, wirePath)
		}
		if m := p.Machine; m != nil {
			list = append(list, plan.FSM)
			if m.Log != nil || m.Raft != nil {
				list = append(list, plan.Raft, walPath, wirePath)
			}
		}
	}
	return list
}

// variables are the names of parameters and variables in the output. No import gets
// one of these names.
var variables = []Ident{
	"a", "all", "at", "b", "batch", "budget", "c", "position", "cancel", "construct", "ctx", "d", "e", "edge", "err", "failed", "first", "from", "h", "i", "in", "info", "inputs",
	"instance", "instances", "j", "k", "key", "kind", "l", "limit", "list", "m", "missed", "n", "now", "number", "o", "ok", "opts", "out", "p", "parts", "payload", "processor",
	"processors", "put", "q", "r", "reply", "s", "seed", "send", "t", "targets", "tick", "to", "u", "value", "x",
}

// scope records the names in the generated package, so that no declaration shadows a
// name that the output needs.
type scope struct {
	mentioned names             // identifiers of the package that the output mentions
	level     names             // at package level: declared, imported or reserved
	declared  func(string) bool // the user's files declare the name
	imported  func(string) bool // one of the user's files imports a package under the name
	aliases   map[string]Ident  // by import path
	renamed   map[string]bool   // import paths whose alias is not the package's name
	order     []string          // import paths in the order of registration
}

func newScope(p *plan.Plan, o Options) *scope {
	none := func(string) bool { return false }
	s := &scope{
		mentioned: make(names), level: make(names), declared: none, imported: none,
		aliases: make(map[string]Ident), renamed: make(map[string]bool),
	}
	if o.Declared != nil {
		s.declared = o.Declared
	}
	if o.Imported != nil {
		s.imported = o.Imported
	}
	for _, v := range variables {
		s.level[v] = true
	}
	foreign := s.mention(p)
	for _, path := range slices.Concat(imported, o.Imports) {
		s.register(path, true)
	}
	if schema := o.Schema; schema != nil {
		foreign = append(schema.Imports(), foreign...)
		for _, name := range schema.Mentions() {
			s.mentioned[mustIdent(name)] = true
		}
	}
	for _, path := range foreign {
		s.register(path, false)
	}
	return s
}

// mention records every identifier in the plan that belongs to the package. It returns every
// import path in the plan.
func (s *scope) mention(p *plan.Plan) (paths []string) {
	p.Mentions(func(path, name string) {
		i := mustIdent(name)
		if path == "" {
			s.mentioned[i] = true
			return
		}
		path, err := importPath(path)
		if err != nil {
			panic(err)
		}
		paths = append(paths, path)
	})
	return paths
}

// register chooses the name under which the output imports a package. For packages
// outside the runtime, only the path is known, not the name.
func (s *scope) register(importPath string, ours bool) {
	if s.aliases[importPath] != "" {
		return
	}
	name := packageName(importPath)
	alias := name.firstFree(func(i Ident) bool { return s.taken(i) || token.IsKeyword(string(i)) })
	s.level[alias] = true
	s.aliases[importPath] = alias
	s.renamed[importPath] = !ours || alias != name
	s.order = append(s.order, importPath)
}

// packageName guesses the name of the package at a path.
func packageName(importPath string) Ident {
	name := path.Base(importPath)
	if isVersion(name) && path.Dir(importPath) != "." {
		name = path.Base(path.Dir(importPath))
	}
	if at := strings.LastIndex(name, ".v"); at > 0 && isVersion(name[at+1:]) {
		name = name[:at]
	}
	name = strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, name), "0123456789")
	if name == "" {
		return "pkg"
	}
	return Ident(name)
}

func isVersion(s string) bool {
	return len(s) > 1 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}

// taken reports whether i has a meaning at package level.
func (s *scope) taken(i Ident) bool {
	return i.predeclared() || s.level[i] || s.mentioned[i] || s.declared(string(i))
}

// top returns a free name at package level for a generated declaration.
func (s *scope) top(name Ident) Ident {
	free := name.firstFree(func(i Ident) bool { return s.taken(i) || s.imported(string(i)) })
	s.level[free] = true
	return free
}

// local is the name of a variable. It does not shadow a name that the output mentions.
func (s *scope) local(name Ident) Ident {
	for s.mentioned[name] {
		name += "_"
	}
	return name
}

// file returns an empty file with the aliases of all imports.
func (s *scope) file(p *plan.Plan) *jen.File {
	f := jen.NewFilePathName(p.ImportPath, p.Package)
	f.NoFormat = true
	for _, path := range s.order {
		if s.renamed[path] {
			f.ImportAlias(path, string(s.aliases[path]))
		} else {
			f.ImportName(path, string(s.aliases[path]))
		}
	}
	return f
}
