package bind

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// binder finds the facts of an outline in a checked package.
type binder struct {
	*reporter
	*Result             // the binder fills in the result
	plan     *plan.Plan // the outline; the binder does not change it
	checked  *checked
	declared map[string]*ast.Ident
	broken   map[string]bool // import paths that have a finding
	lacking  map[string]int  // by type: index of its last entry in Missing
	subjects []*subject      // bound processors
	calls    map[*types.TypeName]*calls
	ofType   map[string][]*plan.Processor // processors by type; nil until needed
	listed   map[string]bool              // names of the types in Result.Messages
	keyed    map[string]*keyField         // fields for keys by message type; nil until needed
	taken    taken                        // taken names; nil until needed
	near     spec.Similar
	types    map[typesOf][]string // results of typeNames

	context, tick, instance, deadLetter, index types.Type
	kept                                       map[string]types.Type      // states and updates of state machines, by name
	messageTypes                               map[string]types.Type      // by message name; nil if the type has a finding
	renamedMessages                            map[string]bool            // messages whose finding suggests another type
	asJSON                                     map[string]bool            // messages and replies that keptAsJSON has checked
	sources                                    map[string]*source         // sources of other packages by import path
	edgesOf                                    map[string][]int           // edges by message; nil until needed
	used                                       map[string]map[string]bool // types of the package in use, by the code of findings about them
	renamed                                    map[int]string             // by processor with an undeclared type: a type with its methods
	quoted                                     map[token.Pos]bool         // positions of type errors that findings quote
}

func newBinder(r *Result, c *checked) *binder {
	return &binder{
		reporter:        r.reporter,
		Result:          r,
		plan:            r.Outline,
		checked:         c,
		declared:        r.root.source.taken(),
		broken:          make(map[string]bool),
		lacking:         make(map[string]int),
		calls:           make(map[*types.TypeName]*calls),
		messageTypes:    make(map[string]types.Type),
		kept:            make(map[string]types.Type),
		asJSON:          make(map[string]bool),
		renamedMessages: make(map[string]bool),
		sources:         make(map[string]*source),
		renamed:         make(map[int]string),
		quoted:          make(map[token.Pos]bool),
		listed:          make(map[string]bool),
		types:           make(map[typesOf][]string),
		used:            usedTypes(r.Outline),
	}
}

// bind binds all declarations, even after findings.
func (b *binder) bind() {
	b.names()
	b.runtime()
	b.machines()
	b.resolveMessages()
	for i := range b.plan.Processors {
		b.machineKey(i)
	}
	for i := range b.plan.Edges {
		b.key(i)
		b.durableEdge(i)
	}
	b.aggregates()
	b.ownership()
	b.attempts()
	b.proposers()
	b.PortsReady = !finding.HasErrors(b.findings) && !b.topology.Partial
	starts := make([]bool, len(b.plan.Processors))
	for i := range b.plan.Processors {
		starts[i] = b.plan.Processors[i].External || b.processor(i)
	}
	for _, s := range b.subjects {
		b.warnings(s)
	}
	b.boundary()
	if !b.topology.Partial {
		for _, f := range spec.Unreachable(b.topology, func(i int) bool { return starts[i] }) {
			for _, s := range b.subjects {
				if s.file.Pointer == f.Pointer {
					f.Suggestion = cmp.Or(b.misspelledStart(s), f.Suggestion)
				}
			}
			b.add(f)
		}
	}
	b.Facts.Bound = !finding.HasErrors(b.findings) && !b.topology.Partial
}

// names reports declarations of the package that collide with generated names.
func (b *binder) names() {
	for _, n := range b.plan.Names() {
		if id := b.declared[n.Ident]; id != nil && !slices.Contains(b.plan.Collided, n.Ident) {
			b.atGo(finding.NameTaken, id.Pos(), id.Name, "", "the package must not declare %s: it is the generated name of %s; rename it", n.Ident, b.plan.NameText(n))
		}
	}
	for _, word := range plan.Words {
		if id := b.declared[word]; id != nil {
			b.atGo(finding.NameTaken, id.Pos(), id.Name, "", "the package must not declare %[1]s: generated code uses the %[1]s of Go; rename it", word)
		}
	}
	b.importedNames()
}

// importedNames reports imports that collide with generated names, by name or by a dot
// import. Go does not allow the same name in a file's imports and in its package.
func (b *binder) importedNames() {
	names := make(map[string]plan.Name)
	for _, n := range b.plan.Names() {
		names[n.Ident] = n
	}
	for _, file := range b.root.source.all() {
		for _, i := range file.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil || i.Name == nil {
				continue
			}
			if n, ok := names[i.Name.Name]; ok {
				b.atGo(finding.NameTaken, i.Name.Pos(), i.Name.Name, "", "an import must not have the name %s: it is the generated name of %s; import the package under another name", n.Ident, b.plan.NameText(n))
			}
			if i.Name.Name != "." {
				continue
			}
			p, err := b.loader.Import(path)
			if err != nil {
				continue // the import itself has an error
			}
			for _, name := range p.Scope().Names() {
				if n, ok := names[name]; ok {
					b.atGo(finding.NameTaken, i.Path.Pos(), i.Path.Value, "import the package by its name",
						"the dot import must not declare %s: it is the generated name of %s", name, b.plan.NameText(n))
				}
			}
		}
	}
}

// runtime finds the types of the runtime that methods may use.
func (b *binder) runtime() {
	b.context = b.checked.lookup(contextName)
	b.tick = b.checked.lookup(tickName)
	b.deadLetter = b.checked.lookup(deadLetterName)
	if b.plan.Supervision != nil {
		b.index = b.checked.lookup("ProcessorIndex")
	}
	b.instance = b.checked.lookup(instanceName)
	if b.importable(plan.Topo, b.topology.Name) && b.plan.Durable != nil {
		b.importable(plan.DurableRuntime, b.topology.Name)
	}
}

// requireRuntime says how a module requires the runtime whose packages have a problem. A
// development build has no release that the go command could download.
func requireRuntime(problem string) string {
	const tool = "-tool " + runtimeModule + "/cmd/topogen && go mod tidy"
	switch {
	case strings.Contains(problem, "replaced but not required"):
		return "run go mod edit " + tool
	case ownVersion() == "":
		return "run go mod edit -replace " + runtimeModule + "=CLONE " + tool + ", with the folder of your clone of topogen"
	}
	return "run go get " + runtimeModule
}

// importable reports whether the generated package can import the package at path. If not,
// the first call adds a finding at the place where the topology mentions the package.
func (b *binder) importable(path string, at spec.Text) bool {
	if b.broken[path] {
		return false
	}
	if path == "" {
		return true
	}
	suggestion, problem := "", b.loader.problem(path)
	p := b.loader.listed[path]
	switch {
	case problem != "" && p != nil && lacksVendored(p):
		_, command := b.loader.vendor()
		problem, suggestion = "package "+path+" is not in the vendor folder", "run "+withoutVendor+" && "+command
	case problem != "" && (path == plan.Topo || strings.HasPrefix(path, runtimeModule+"/")):
		suggestion = requireRuntime(problem)
		problem, _, _ = strings.Cut(problem, "; to add it: ") // the go command suggests this for a single package too
		problem = "the runtime cannot be loaded: " + problem
	case problem != "" && b.missingFolder(path) != "":
		folder := b.missingFolder(path)
		problem = fmt.Sprintf("package %s cannot be loaded: module %s has no folder %s", path, b.root.module.path, folder)
		suggestion = b.otherFolder(path, folder)
	case problem != "":
		problem = "package " + path + " cannot be loaded: " + problem
	case !plan.Visible(path, b.root.path):
		problem = "package " + path + " is internal and cannot be imported from here"
	case p != nil && p.Name == "main":
		problem = "package " + path + " is a program and cannot be imported"
	case b.loader.reach(make(map[string]bool), path)[b.root.path]:
		problem = "package " + path + " imports " + b.root.path + ", and generated code would close an import cycle"
		suggestion = "declare the parameter out of its handlers as an interface of your own, and move shared messages into a package that both import"
	default:
		return true
	}
	b.broken[path] = true
	b.at(finding.PackageNotLoaded, at, suggestion, "%s", problem)
	return false
}

// missingFolder returns the folder of a package of the module of the generated package, if it does
// not exist; else "".
func (b *binder) missingFolder(path string) string {
	folder, ok := strings.CutPrefix(path, b.root.module.path+"/")
	if !ok {
		return ""
	}
	if _, err := os.Stat(filepath.Join(b.root.module.dir, folder)); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return folder
}

// otherFolder is the suggestion for a package whose folder does not exist.
func (b *binder) otherFolder(path, folder string) string {
	entries, _ := os.ReadDir(filepath.Join(b.root.module.dir, filepath.Dir(folder)))
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	base := filepath.Base(folder)
	if near := b.near.Nearest(base, names); near != "" {
		return "did you mean " + strings.TrimSuffix(path, base) + near + "?"
	}
	return "correct the import path, or create the package"
}

// resolveMessages finds the type of each message, at the first edge that names it.
func (b *binder) resolveMessages() {
	mentions := b.mentions()
	pointerful := make(map[string]bool)
	for index, name := range b.root.skeleton.messages {
		m := mentions[name]
		if b.ofUnknownUpdate(m.ref) {
			continue // the update has a finding already
		}
		alias := messagePrefix + strconv.Itoa(index)
		b.messageTypes[name] = b.messageType(name, alias, m)
		pointerful[name] = b.pointers(b.messageTypes[name]) != ""
	}
	for i := range b.plan.Edges {
		if e := &b.plan.Edges[i]; e.From >= 0 && !e.DeadLetter {
			b.Facts.Edges[i].Pointerful = pointerful[e.Message]
		}
	}
}

// mention is the place in the topology that gives a message its type.
type mention struct {
	at     spec.Text
	ref    plan.TypeRef
	listed bool // under messages
}

// mentions finds where each message gets its type: under messages, else at the
// first edge that names it.
func (b *binder) mentions() map[string]mention {
	mentions := make(map[string]mention)
	add := func(at spec.Text, ref plan.TypeRef) {
		if _, ok := mentions[at.Value]; !ok && at.Value != "" {
			mentions[at.Value] = mention{at, ref, false}
		}
	}
	for i, e := range b.topology.Edges {
		if e.Every == 0 {
			add(e.Message, b.plan.Edges[i].Type)
		}
		add(e.Reply, b.plan.Edges[i].ReplyType)
	}
	for _, m := range b.topology.Messages {
		if old, ok := mentions[m.Name.Value]; ok {
			mentions[m.Name.Value] = mention{m.Type, old.ref, true}
		}
	}
	return mentions
}

// resolve finds a type that the topology names. It reports an invalid type and returns
// nil. instead suggests a replacement for an undeclared type; if it is nil or returns "",
// resolve suggests a type with a similar name.
func (b *binder) resolve(code, what, alias string, ref plan.TypeRef, at spec.Text, instead func() string) types.Type {
	whole := true
	for _, path := range slices.Compact(ref.Imports(nil)) {
		whole = b.importable(path, at) && whole
	}
	if !whole {
		return nil
	}
	if t := b.checked.lookup(alias); t != nil {
		return t
	}
	name, where, pkg := ref.Name, "package "+b.root.name, b.packageAt(ref.Import)
	if ref.Import != "" {
		where = "package " + ref.Import
	} else if folder, _ := filepath.Split(filepath.Clean(b.topology.Output.Value)); folder != "" {
		where += fmt.Sprintf(" in the folder %s, which output names", filepath.Clean(folder))
	}
	suggestion := ""
	if instead != nil {
		suggestion = instead()
	}
	switch {
	case ref.Kind == plan.Named && pkg != nil && pkg.Scope().Lookup(name) == nil && types.Universe.Lookup(name) == nil:
		if suggestion == "" {
			suggestion = b.undeclaredType(code, ref, pkg.Scope())
		}
		b.at(code, at, suggestion, "type %s is not declared in %s", name, where)
	default:
		b.at(code, at, suggestion, "the type of %s is invalid: %s", what, b.words(b.checked.wrong[alias]))
	}
	return nil
}

// undeclaredType is the suggestion for a type that a package lacks.
func (b *binder) undeclaredType(code string, ref plan.TypeRef, scope *types.Scope) string {
	if where := b.inExcludedFile(ref.Import, "", ref.Name); where != "" {
		return where
	}
	if near := b.near.Nearest(ref.Name, b.typeNames(scope, code)); near != "" {
		return "did you mean " + near + "?"
	}
	if ref.Import != "" || len(ref.Args) > 0 {
		return ""
	}
	t := Struct{Name: ref.Name}
	if code == finding.MessageType {
		t = b.message(ref.Name)
		if !b.listed[t.Name] { // several messages may have one type
			b.listed[t.Name] = true
			b.Messages = append(b.Messages, t)
		}
	}
	return "write " + t.String() + ScaffoldHint
}

// words replaces the aliases of the skeleton in a type checker's message by import paths.
func (b *binder) words(message string) string {
	for path, alias := range b.root.skeleton.aliases {
		message = strings.ReplaceAll(message, alias+".", path+".")
	}
	if message == "" {
		return "it is not a type"
	}
	return message
}

// typeNames lists the user's types in a package that a finding of that code may suggest.
// It leaves out processor types for messages, and message types for processors: for the
// processor alerts the message type Alert would be a wrong suggestion.
func (b *binder) typeNames(scope *types.Scope, code string) []string {
	key := typesOf{scope, code}
	if names, ok := b.types[key]; ok {
		return names
	}
	own, other := scope == b.checked.pkg.Scope(), finding.MessageType
	if code == finding.MessageType {
		other = finding.ProcessorType
	}
	var names []string
	for _, name := range scope.Names() {
		if _, ok := scope.Lookup(name).(*types.TypeName); ok && (!own || b.declared[name] != nil && !b.used[other][name]) {
			names = append(names, name)
		}
	}
	b.types[key] = names
	return names
}

// typesOf has the arguments of typeNames.
type typesOf struct {
	scope *types.Scope
	code  string
}

// usedTypes are the types of the package that a plan uses for processors and for messages,
// by the code of the findings about them.
func usedTypes(p *plan.Plan) map[string]map[string]bool {
	used := map[string]map[string]bool{finding.ProcessorType: {}, finding.MessageType: {}}
	add := func(code string, t *plan.TypeRef) {
		if t.Import == "" {
			used[code][t.Name] = true
		}
	}
	for i := range p.Processors {
		add(finding.ProcessorType, &p.Processors[i].Type)
	}
	for i := range p.Edges {
		add(finding.MessageType, &p.Edges[i].Type)
	}
	return used
}

// typeText is t as a person would write it in the package.
func (b *binder) typeText(t types.Type) string { return plan.TypeText(t, b.checked.pkg) }

// own reports whether pos is in the folder of the generated package, where the user can
// fix an error.
func (b *binder) own(pos token.Pos) bool {
	return pos.IsValid() && b.texts[b.fset.PositionFor(pos, false).Filename] != nil
}

// atFunc reports a finding about a function: at its declaration if that is in the
// generated package or in another package of its module, else at the place in the topology
// that needs the function.
func (b *binder) atFunc(code string, f *types.Func, needed spec.Text, suggestion, text string) {
	if b.own(f.Pos()) || f.Pos().IsValid() && f.Pkg() != nil && b.mayChange(f.Pkg().Path()) {
		b.atGo(code, f.Pos(), f.Name(), suggestion, "%s", text)
	} else {
		b.at(code, needed, suggestion, "%s", text)
	}
}

// mayChange reports whether a package of another path has files that the user may change.
func (b *binder) mayChange(path string) bool {
	p := b.loader.listed[path]
	return p != nil && mayChange(p)
}

// method returns the method of an addressable value of type t, or nil.
func (b *binder) method(t types.Type, name string) *types.Func {
	if t == nil {
		return nil
	}
	object, _, _ := types.LookupFieldOrMethod(t, true, b.checked.pkg, name)
	f, _ := object.(*types.Func)
	return f
}

// packageAt is the package at an import path, "" for the generated package. It is nil if
// the package cannot be loaded.
func (b *binder) packageAt(importPath string) *types.Package {
	if importPath == "" {
		return b.checked.pkg
	}
	p, err := b.loader.Import(importPath)
	if err != nil {
		return nil
	}
	return p
}

// isNamed reports whether t is the type of that name in a package.
func isNamed(t types.Type, path, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path
}
