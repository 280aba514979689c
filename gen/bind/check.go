package bind

import (
	"go/ast"
	"go/parser"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/plan"
)

// root is the package of a topology's generated files.
type root struct {
	module   *module
	path     string
	name     string
	source   *source
	skeleton *skeleton
	outline  *plan.Plan
	file     string         // the topology file
	quiet    bool           // Input.Quiet
	verified *types.Package // with the generated code, for packages that import it; nil: Verify was not called
	complete bool           // verified has all of the generated code
}

// imported lists the packages that the user's files or the topology name.
func (r *root) imported() []string {
	return slices.AppendSeq(r.source.imported(), maps.Keys(r.skeleton.aliases))
}

// planned describes the package for plan.Outline.
func (r *root) planned() plan.Package {
	return plan.Package{Name: r.name, Path: r.path, Constraint: r.source.constraint()}
}

// checked is a root after type checking.
type checked struct {
	pkg    *types.Package
	errors []types.Error
	wrong  map[string]string // by alias of the skeleton: the type error on its line

	written map[types.Type]types.Type // by type: the type as the topology names it, which may be an alias
}

// checkRoot checks the declarations of r together with its skeleton.
func (l *loader) checkRoot(r *root) *checked {
	if c := l.results[r.path]; c != nil {
		return c
	}
	l.inProgress[r.path] = true
	defer delete(l.inProgress, r.path)
	c := &checked{wrong: make(map[string]string), written: make(map[types.Type]types.Type)}
	overlay, err := parser.ParseFile(l.fset, skeletonFile, r.skeleton.text, parser.SkipObjectResolution)
	if err != nil {
		panic("bind: the skeleton does not parse: " + err.Error()) // every name in it was validated
	}
	config := &types.Config{
		GoVersion:        r.module.goVersion,
		IgnoreFuncBodies: true,
		Importer:         withC{l, r.source.files},
		Sizes:            l.env.sizes(),
		Error: func(err error) {
			e, ok := err.(types.Error)
			if !ok || strings.HasPrefix(e.Msg, "\t") || aboutC(e) { // a continuation of the previous error
				return
			}
			if at := l.fset.PositionFor(e.Pos, false); at.Filename == skeletonFile {
				if subject := r.skeleton.lines[at.Line]; subject != "" && c.wrong[subject] == "" {
					c.wrong[subject] = e.Msg
				}
				return
			}
			c.errors = append(c.errors, e)
		},
	}
	c.pkg, _ = config.Check(r.path, l.fset, append([]*ast.File{overlay}, r.source.files...), nil)
	l.results[r.path] = c
	return c
}

// lookup is the type of an alias of the skeleton, or nil.
func (c *checked) lookup(alias string) types.Type {
	object, ok := c.pkg.Scope().Lookup(alias).(*types.TypeName)
	if !ok || c.wrong[alias] != "" {
		return nil
	}
	t := types.Unalias(object.Type())
	if t == types.Typ[types.Invalid] {
		return nil
	}
	if alias, ok := object.Type().(*types.Alias); ok {
		c.written[t] = alias.Rhs()
	}
	return t
}

// asWritten returns the type that the topology names for t, a result of lookup.
func (c *checked) asWritten(t types.Type) types.Type {
	if w := c.written[t]; w != nil {
		return w
	}
	return t
}

func (e *environment) sizes() types.Sizes {
	return types.SizesFor("gc", e.context(nil).GOARCH)
}

// senderType is *ParserSender as the skeleton declares it, or nil.
func (c *checked) senderType(p *plan.Processor) types.Type {
	if !p.HasSender() {
		return nil
	}
	if t := c.lookup(p.Sender()); t != nil {
		return types.NewPointer(t)
	}
	return nil
}
