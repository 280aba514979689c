package bind

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
	"github.com/topogen/topogen/spec"
)

// numbersBytesMax bounds the file of field numbers: a line for each field.
const numbersBytesMax = 4 << 20

// Border is what crosses to processes of isolated processors.
type Border struct {
	Schema wire.Schema
	Roots  []string // of each root of the schema: what plan.Edge.Crossing calls it
	Name   string   // of the file of field numbers, beside the topology file
	File   []byte   // what it is to hold
}

// isolated reports whether some processor is.
func isolated(p *plan.Plan) bool {
	for i := range p.Processors {
		if w := p.Processors[i].Watch; w != nil && w.Isolated {
			return true
		}
	}
	return false
}

// border finds how the messages are written that cross to processes. It needs
// real types: what a message is made of matters to the last field.
func (b *binder) border() {
	if !isolated(b.plan) || b.loader == nil && b.unsure() {
		return
	}
	var inputs []wire.Input
	at := make(map[string]spec.Text)
	add := func(name string, where spec.Text) {
		if _, ok := at[name]; ok {
			return
		}
		t := b.messages[name]
		if name == plan.TickCrossing {
			t = b.tick
		}
		if t == nil {
			return // has a finding of its own
		}
		at[name] = where
		inputs = append(inputs, wire.Input{Name: name, Type: t})
	}
	for i := range b.plan.Edges {
		e := &b.plan.Edges[i]
		if !b.plan.Crosses(i) {
			continue
		}
		if e.DeadLetter {
			b.at("TG317", b.topology.Processors[e.From].OnError.DeadLetter, "let it run in a goroutine",
				"dead letters of %q cannot cross to the process of %q: they hold messages of any type", b.plan.Processors[e.From].Name, b.plan.Processors[e.To].Name)
			continue
		}
		declared := i
		if e.ReplyOf >= 0 {
			declared = e.ReplyOf
		}
		file := b.topology.Edges[declared]
		where := file.Message
		if e.From < 0 {
			where = spec.Text{At: file.At, Pointer: file.Pointer}
		}
		add(e.Crossing(), where)
		if e.Reply != "" {
			add(e.Reply, file.Reply)
		}
	}
	schema, problems := wire.Build(b.checked.pkg, inputs)
	name := NumbersFile(b.topology.File)
	old, err := readNumbers(filepath.Join(b.dir, name))
	if err != nil {
		b.at("TG318", spec.Text{}, "", "the file of field numbers cannot be read: %v", b.local(err.Error()))
		return
	}
	schema, file, more := wire.Assign(schema, old)
	for _, p := range append(problems, more...) {
		b.borderProblem(p, name, at[p.Root])
	}
	border := &Border{Schema: schema, Name: name, File: file}
	for _, root := range schema.Roots {
		border.Roots = append(border.Roots, root.Name)
	}
	b.crossing = border
	b.plan.Wire = plan.HashOf(schema)
}

// borderProblem reports why a message cannot be written, or what is wrong with the
// numbers of its fields.
func (b *binder) borderProblem(p wire.Problem, file string, at spec.Text) {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	switch {
	case p.Line > 0 || p.Root == "":
		f := spec.NewFinding("TG318", filepath.Join(filepath.Dir(b.topology.File), file),
			spec.Range{Line: max(p.Line, 1), Column: 1, EndLine: max(p.Line, 1), EndColumn: 2}, "", text, p.Suggestion)
		b.add(f)
	case p.Pos.IsValid() && b.own(p.Pos):
		f := b.goFinding("TG317", b.fset.PositionFor(p.Pos, false), "it cannot cross to a process: "+text)
		f.Suggestion = p.Suggestion
		b.add(f)
	default:
		b.at("TG317", at, p.Suggestion, "message %q cannot cross to a process: %s", p.Root, text)
	}
}

// NumbersFile is the base name of the file of field numbers that stands beside a
// topology file.
func NumbersFile(topology string) string {
	base := filepath.Base(topology)
	return strings.TrimSuffix(strings.TrimSuffix(base, ".yml"), ".yaml") + ".wire.yml"
}

func readNumbers(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > numbersBytesMax {
		return nil, errors.New(filepath.Base(path) + " is no regular file, or too large")
	}
	return os.ReadFile(path)
}

// Schema says how messages are written that cross to processes; nil: none does.
func (r *Result) Schema() *wire.Schema {
	if r.Border == nil {
		return nil
	}
	return &r.Border.Schema
}
