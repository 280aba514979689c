package main

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// public are the packages whose exported names users call: docs/reference/runtime.md and the
// guides name them.
var public = []string{
	"clock", "durable", "durable/client", "durable/edges", "errtop", "freelist", "fsm", "graph", "hexid", "pool", "process",
	"queue", "raft", "raft/wal", "rankedmap", "shard", "supervise", "topo", "transport", "transport/certs", "transport/grpc", "tree", "wire",
}

// testFolders hold only tests, their support and their input.
var testFolders = []string{"internal/test/", "generated_test/"}

// kept are declarations that nothing uses, or only tests, and that must stay.
var kept = []struct {
	reason string
	keys   []string // below the path of the module
}{
	{"topogen run copies the file into programs, and main.go.tmpl calls it", []string{"cmd/topogen/internal/launch/faults.topogenWatch"}},
	{"doc.go shows how to compile one file", []string{"gen.Generate"}},
	{"doc.go names the readers of the plain form of a log", []string{"runtime/cluster/table/broadcast.ReadPlain", "runtime/cluster/table/broadcast.Places"}},
}

// unused finds declarations that nothing uses, and declarations outside of tests that only
// tests use. It starts from the main functions, the names that users call, and the generated
// code, and follows the uses. The tests are a second start.
//
// A method is also used if its type is used and an interface has a method of the same shape.
// Files of other modules and files that this build excludes are read without types: a name in
// them uses each declaration of that name.
func unused(r *repo) (found []finding, err error) {
	u, err := newUses(r)
	if err != nil {
		return nil, err
	}
	r.count(len(u.declared))
	inPrograms := u.reach(func(d *declaration) bool { return d.root && !d.test })
	inAll := u.reach(func(d *declaration) bool { return d.root })
	wrong := make(map[string]finding)
	for key, d := range u.declared {
		switch {
		case d.name == nil || d.generated || d.input:
		case !inAll[key]:
			wrong[key] = r.at(d.name.Pos(), "nothing uses the %s %s: delete it", d.kind, d.name.Name)
		case !inPrograms[key] && !d.test:
			wrong[key] = r.at(d.name.Pos(), "only tests use the %s %s: move it to a test or to internal/test, or delete it", d.kind, d.name.Name)
		}
	}
	r.note("%d declarations", len(u.declared))
	return r.withoutKept(wrong), nil
}

// withoutKept returns the findings, which have the keys of declarations, except for the
// declarations in kept. An entry of kept that is not needed is a finding itself.
func (r *repo) withoutKept(wrong map[string]finding) (found []finding) {
	tables := ownPackage + "/unused.go"
	for _, k := range kept {
		for _, name := range k.keys {
			key := module + "/" + name
			if _, ok := wrong[key]; !ok && r.exists(tables) {
				found = append(found, finding{tables, 0, name + " is used or does not exist: remove it from kept"})
			}
			delete(wrong, key)
		}
	}
	for _, f := range wrong {
		found = append(found, f)
	}
	return found
}

// A declaration is a name of package level or a method.
type declaration struct {
	name      *ast.Ident // nil: code that is not a declaration with a name
	kind      string     // such as function
	uses      []string   // keys of declarations
	root      bool       // a start of a program or a test
	test      bool       // is in a test or in the support of tests
	input     bool       // is input of a test, which may have unused names
	generated bool
}

// uses has the declarations of the module, by the path of the package and the name.
type uses struct {
	*repo
	declared   map[string]*declaration
	interfaces map[string]bool // the shapes of the methods of interfaces
	aliased    map[string]bool // types whose methods users call by an alias
}

// newUses reads all packages.
func newUses(r *repo) (*uses, error) {
	list, err := r.packages()
	if err != nil {
		return nil, err
	}
	u := &uses{r, make(map[string]*declaration), interfaceMethods(list), make(map[string]bool)}
	for _, p := range list {
		if isPublic(p.PkgPath) {
			u.addAliases(p.Types.Scope())
		}
	}
	read := make(map[string]bool)
	// A package with its tests has the files of the package too, so each file is read once.
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *typed) int { return len(b.Syntax) - len(a.Syntax) })
	for _, p := range list {
		if p.TypesInfo == nil {
			continue
		}
		for _, file := range p.Syntax {
			if name := r.fset.Position(file.FileStart).Filename; !read[name] {
				read[name] = true
				u.addFile(p, file)
			}
		}
	}
	return u, u.addNames(read)
}

func isPublic(pkg string) bool {
	name, ok := strings.CutPrefix(pkg, runtimePath)
	return ok && slices.Contains(public, name)
}

// addAliases adds the types of other packages for which a package has a name.
func (u *uses) addAliases(pkg *types.Scope) {
	for _, name := range pkg.Names() {
		if t, ok := pkg.Lookup(name).(*types.TypeName); ok && t.IsAlias() {
			if named, ok := types.Unalias(t.Type()).(*types.Named); ok {
				u.aliased[u.keyOf(named.Obj())] = true
			}
		}
	}
}

// reach returns the keys of the declarations that the roots use, directly or through others.
func (u *uses) reach(isRoot func(*declaration) bool) map[string]bool {
	reached := make(map[string]bool)
	var open []string
	add := func(key string) {
		if !reached[key] && u.declared[key] != nil {
			reached[key] = true
			open = append(open, key)
		}
	}
	for key, d := range u.declared {
		if isRoot(d) {
			add(key)
		}
	}
	for _, k := range kept {
		for _, name := range k.keys {
			for _, used := range u.declare(module + "/" + name).uses {
				add(used)
			}
		}
	}
	for len(open) > 0 {
		key := open[len(open)-1]
		open = open[:len(open)-1]
		for _, used := range u.declared[key].uses {
			add(used)
		}
	}
	return reached
}

// declare returns the declaration of a key.
func (u *uses) declare(key string) *declaration {
	d := u.declared[key]
	if d == nil {
		d = new(declaration)
		u.declared[key] = d
	}
	return d
}

// keyOf returns the path of the package and the name of an object. It is "" for objects in
// functions, fields, methods of interfaces, and objects of other modules.
func (u *uses) keyOf(obj types.Object) string {
	if obj == nil || obj.Pkg() == nil || !strings.HasPrefix(obj.Pkg().Path(), module) || obj.Name() == "_" {
		return ""
	}
	if f, ok := obj.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			name := receiver(recv.Type())
			if name == "" || types.IsInterface(recv.Type()) {
				return ""
			}
			return obj.Pkg().Path() + "." + name + "." + obj.Name()
		}
	}
	if obj.Parent() != obj.Pkg().Scope() {
		return ""
	}
	return obj.Pkg().Path() + "." + obj.Name()
}

// receiver is the name of the type of a receiver.
func receiver(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

// typeOfMethod is the key of the type of a method.
func typeOfMethod(key string) string { return key[:strings.LastIndexByte(key, '.')] }
