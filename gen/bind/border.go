package bind

import (
	"fmt"
	"go/token"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Border is what crosses to processes of isolated processors.
type Border struct {
	Schema wire.Schema // its roots are called as plan.Edge.Crossing and replies are
	Name   string      // of the file of field numbers, beside the topology file
	File   []byte      // what it is to hold
}

// crossing is where the file first makes a message cross.
type crossing struct {
	where    spec.Text
	isolated string // the processor that runs in a process, or
	machine  string // that keeps it in a log
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

// keeps reports whether some machine has a log.
func keeps(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Processors, func(q plan.Processor) bool { return q.Machine != nil && q.Machine.Kept() && q.Machine.State != "" })
}

// border finds how the messages are written that cross to processes, and what
// machines keep.
func (b *binder) border() {
	if !isolated(b.plan) && !keeps(b.plan) {
		return
	}
	var inputs []wire.Input
	at := make(map[string]crossing)
	kept := make(map[string]bool)
	add := func(name string, where crossing) {
		if _, ok := at[name]; ok {
			return
		}
		t := b.messages[name]
		if name == plan.TickCrossing {
			t = b.tick
		} else if t == nil {
			t = b.kept[name]
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
			from, to := b.plan.Processors[e.From].Name, b.plan.Processors[e.To].Name
			b.at(finding.NotEncodable, b.topology.Processors[e.From].OnError.DeadLetter, fmt.Sprintf("take \"isolation: process\" from %q", to),
				"dead letters of %q cannot cross to the process of %q: they hold messages of any type", from, to)
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
		isolated := &b.plan.Processors[e.To]
		if isolated.Watch == nil || !isolated.Watch.Isolated {
			isolated = &b.plan.Processors[e.From]
		}
		add(e.Crossing(), crossing{where: where, isolated: isolated.Name})
		if e.Reply != "" {
			add(e.Reply, crossing{where: file.Reply, isolated: isolated.Name})
		}
	}
	for i := range b.plan.Processors {
		if m := b.plan.Processors[i].Machine; m != nil && m.Kept() && m.State != "" {
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
	name := wire.FileName(b.topology.File)
	old, problem := wire.ReadFile(filepath.Join(b.dir, name))
	if problem != nil {
		problems = []wire.Problem{*problem}
	} else {
		schema, old, problems = wire.Assign(schema, old)
	}
	for _, p := range problems {
		b.add(p.Finding(filepath.Join(filepath.Dir(b.topology.File), name), old))
	}
	b.crossing = &Border{Schema: schema, Name: name, File: old}
	b.facts.Wire = plan.HashOf(schema)
}

// refused reports why messages cannot be written: a field of this package once,
// however many messages lead to it.
func (b *binder) refused(problems []wire.Problem, at map[string]crossing) {
	seen := make(map[token.Pos]bool)
	for _, p := range problems {
		text := p.Message
		if p.Path != "" && p.Path != p.Root {
			text = p.Path + ": " + text
		}
		from := at[p.Root]
		switch {
		case from.machine != "" && (!p.Pos.IsValid() || !b.own(p.Pos)):
			b.at(finding.NotLogged, from.where, p.Suggestion, "%q cannot be kept in a log: %s", p.Root, text)
		case from.machine != "" && !seen[p.Pos]:
			seen[p.Pos] = true
			b.atGo(finding.NotLogged, p.Pos, p.Field, p.Suggestion, "it cannot be kept in a log, and %q has one: %s", from.machine, text)
		case from.machine != "":
		case !p.Pos.IsValid() || !b.own(p.Pos):
			b.at(finding.NotEncodable, at[p.Root].where, p.Suggestion, "message %q cannot cross to a process: %s", p.Root, text)
		case !seen[p.Pos]:
			seen[p.Pos] = true
			b.atGo(finding.NotEncodable, p.Pos, p.Field, p.Suggestion, "it cannot cross to a process, and %q runs in one: %s", at[p.Root].isolated, text)
		}
	}
}

// Schema says how messages are written that cross to processes; nil: none does.
func (r *Result) Schema() *wire.Schema {
	if r.Border == nil {
		return nil
	}
	return &r.Border.Schema
}
