package bind

import (
	"fmt"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Boundary has the encoding of messages to and from isolated processors, and of the logs
// of state machines.
type Boundary struct {
	Schema wire.Schema // its roots have the names of plan.Edge.Crossing and of replies
	Name   string      // of the file of field numbers, in the folder of the topology file
	File   []byte      // its new contents
}

// crossing is the first place in the file that needs the encoding of a message.
type crossing struct {
	where    spec.Text
	isolated string // the processor that runs in its own process, or ""
	edge     string // the edge that leads to another node, or ""
	machine  string // the state machine that writes it to a log, or ""
}

// boundary finds the encoding of the messages that are sent to other processes, and of
// the values that state machines write to logs.
func (b *binder) boundary() {
	crosses := slices.ContainsFunc(b.plan.Edges, func(e plan.Edge) bool { return e.Crosses })
	if !crosses && !slices.ContainsFunc(b.plan.Processors, func(p plan.Processor) bool { return p.Isolated() || p.Machine.Writes() }) {
		return
	}
	var inputs []wire.Input
	at := make(map[string]crossing)
	kept := make(map[string]bool)
	add := func(name string, where crossing) {
		if _, ok := at[name]; ok {
			return
		}
		t := b.messageTypes[name]
		if name == plan.TickCrossing {
			t = b.tick
		} else if t == nil {
			t = b.kept[name]
		}
		if t == nil {
			return // it has a finding already
		}
		at[name] = where
		inputs = append(inputs, wire.Input{Name: name, Type: b.checked.asWritten(t)})
	}
	for i := range b.plan.Edges {
		e := &b.plan.Edges[i]
		process := b.plan.LeavesProcess(i)
		if !process && !e.Crosses {
			continue
		}
		if e.DeadLetter {
			from, to := b.plan.Processors[e.From].Name, b.plan.Processors[e.To].Name
			b.at(finding.NotEncodable, b.topology.Processors[e.From].OnError.DeadLetter, fmt.Sprintf("remove \"isolation: process\" from %q", to),
				"dead letters of %q cannot be sent to the process of %q: they hold messages of any type", from, to)
			continue
		}
		file := b.topology.Edges[declaredAs(e, i)]
		where := file.Message
		if e.From < 0 {
			where = spec.Text{At: file.At, Pointer: file.Pointer}
		}
		from := crossing{edge: b.plan.EdgeText(i)}
		if process {
			isolated := &b.plan.Processors[e.To]
			if !isolated.Isolated() {
				isolated = &b.plan.Processors[e.From]
			}
			from = crossing{isolated: isolated.Name}
		}
		from.where = where
		add(e.Crossing(), from)
		if e.Reply != "" {
			from.where = file.Reply
			add(e.Reply, from)
		}
	}
	for i := range b.plan.Processors {
		if m := b.plan.Processors[i].Machine; m.Writes() {
			file := b.topology.Processors[i].Machine
			kept[m.State], kept[m.Update], kept[m.Result] = true, true, true
			add(m.State, crossing{where: file.State, machine: b.plan.Processors[i].Name})
			add(m.Update, crossing{where: file.Update, machine: b.plan.Processors[i].Name})
			if m.Result != "" {
				add(m.Result, crossing{where: file.Result, machine: b.plan.Processors[i].Name})
			}
		}
	}
	for i := range inputs {
		inputs[i].Sorted = kept[inputs[i].Name] // replicas write the same bytes
	}
	schema, problems := wire.Build(b.checked.pkg, inputs)
	b.refused(problems, at)
	b.Boundary = &Boundary{Name: wire.FileName(b.topology.File)}
	b.Boundary.Schema, b.Boundary.File, _ = b.numbered(schema)
	b.Facts.Wire = plan.HashOf(b.Boundary.Schema)
}

// declaredAs is the edge of the file to which edge i belongs: for a reply, the edge of the
// request.
func declaredAs(e *plan.Edge, i int) int {
	if e.ReplyOf >= 0 {
		return e.ReplyOf
	}
	return i
}

// numbered gives the fields of a schema their numbers. kept is the contents of the file of
// numbers on disk, now is the new contents.
func (r *reporter) numbered(s wire.Schema) (_ wire.Schema, now, kept []byte) {
	name := wire.FileName(r.topology.File)
	kept, problem := wire.ReadFile(filepath.Join(r.dir, name))
	var problems []wire.Problem
	if problem != nil {
		problems = append(problems, *problem)
	} else {
		s, now, problems = wire.Assign(s, kept)
	}
	for _, p := range problems {
		r.add(p.Finding(filepath.Join(filepath.Dir(r.topology.File), name), kept))
	}
	return s, now, kept
}

// refused adds findings about messages that cannot be encoded. A field of this package has
// one finding, even if several messages contain it.
func (b *binder) refused(problems []wire.Problem, at map[string]crossing) {
	seen := make(map[token.Pos]bool)
	for _, p := range problems {
		text := p.Message
		if p.Path != "" && p.Path != p.Root {
			text = p.Path + ": " + text
		}
		from := at[p.Root]
		code := finding.NotEncodable
		message, field := fmt.Sprintf("message %q cannot be sent to another process", p.Root), fmt.Sprintf("this field cannot be sent to another process, and %q runs in one", from.isolated)
		switch {
		case from.edge != "":
			message = fmt.Sprintf("message %q cannot be sent to another node", p.Root)
			field = fmt.Sprintf("this field cannot be sent to another node, and the edge %s may lead to one", from.edge)
		case from.machine != "":
			code = finding.NotLogged
			message, field = fmt.Sprintf("%q cannot be written to a log", p.Root), fmt.Sprintf("this field cannot be written to a log, and %q has one", from.machine)
		}
		switch {
		case !b.own(p.Pos):
			b.at(code, from.where, p.Suggestion, "%s: %s", message, text)
		case !seen[p.Pos]:
			seen[p.Pos] = true
			b.atGo(code, p.Pos, p.Field, p.Suggestion, "%s: %s", field, text)
		}
	}
}

// Schema is the encoding in Boundary; nil: there is none.
func (r *Result) Schema() *wire.Schema {
	if r.Boundary == nil {
		return nil
	}
	return &r.Boundary.Schema
}

// named lists the messages that the file names, each once, in the order of its edges, and
// then the values that state machines write to logs.
func (b *binder) named() (list []wire.Input) {
	listed := make(map[string]bool)
	add := func(name string, from map[string]types.Type) {
		if from[name] != nil && !listed[name] {
			listed[name] = true
			list = append(list, wire.Input{Name: name, Type: b.checked.asWritten(from[name])})
		}
	}
	for i := range b.plan.Edges {
		e := &b.plan.Edges[i]
		if b.plan.OfMachine(i) || e.DeadLetter {
			continue
		}
		if e.From >= 0 {
			add(e.Message, b.messageTypes)
		}
		add(e.Reply, b.messageTypes)
	}
	for i := range b.plan.Processors {
		if m := b.plan.Processors[i].Machine; m.Writes() {
			add(m.State, b.kept)
			add(m.Update, b.kept)
			add(m.Result, b.kept)
		}
	}
	return list
}

// Proto is the .proto of a topology that binds, with its messages and the values that its
// state machines write to logs. The findings are about the numbers of their fields.
func (r *Result) Proto() ([]byte, []finding.Finding) {
	r.reporter.findings = nil
	schema, refused := wire.Build(r.binder.checked.pkg, r.binder.named())
	schema, now, kept := r.reporter.numbered(schema)
	options := wire.ProtoOptions{Topology: r.reporter.topology.Name.Value, Refused: refused}
	if string(now) != string(kept) {
		options.Loose = wire.FileName(r.reporter.topology.File)
	}
	return wire.Proto(&schema, options), r.reporter.findings
}
