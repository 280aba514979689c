package spec

import (
	"fmt"

	"github.com/topogen/topogen/spec/finding"
)

// claims finds names in the generated code that two parts of the topology ask
// for. Names are joined of others, so that distinct ones may become the same:
// "to-b: M" from a, and "b: MToB" from a.
type claims map[string]claim

type claim struct {
	what string
	own  bool // declared by the user: two parts may name one
}

func (c claims) add(b *builder, name string, next claim, at Text) {
	first, ok := c[name]
	switch {
	case !ok:
		c[name] = next
	case first.what == next.what || first.own && next.own:
	default:
		b.found.addText(finding.Generated, at, fmt.Sprintf("the Go name %s is both %s and %s", name, first.what, next.what), "rename one of them")
	}
}

// checkGenerated reports names that meet in the generated package. Those of senders,
// recorders, interfaces and indices are not among them: they give way (plan.Gaps).
func (b *builder) checkGenerated() {
	t := b.topology
	names, methods := claims{}, claims{}
	for _, name := range []string{"Processors", "New", "Topology", "ProcessorIndex", "EdgeIndex"} {
		names[name] = claim{what: "a name that every topology has"}
	}
	for _, name := range []string{"Run", "Tree", "Snapshot", "Stepper"} {
		methods[name] = claim{what: "a method that every topology has"}
	}
	for _, p := range t.Processors {
		if b.found.broken[p.Pointer] {
			continue
		}
		of := " of processor " + quoted(p.Name.Value)
		methods.add(b, p.Ident, claim{what: "the method for processor " + quoted(p.Name.Value)}, p.Name)
		if p.Machine != nil {
			b.claimMachine(names, &p)
			continue
		}
		if p.External {
			continue
		}
		if local := localType(p.Type.Value, p.Ident); local != "" {
			names.add(b, local, claim{what: "the type" + of, own: true}, p.Name)
		}
	}
	b.claimMessages(names)
	b.checkMethods(names)
}

// localType returns the name of a type in this package, or "".
func localType(expr, otherwise string) string {
	if expr == "" {
		return otherwise
	}
	if t, err := ParseType(expr); err == nil && t.Kind == NamedType && t.Import == "" && !t.Predeclared() {
		return t.Name
	}
	return ""
}

// claimMachine claims what is generated for a machine.
func (b *builder) claimMachine(names claims, p *Processor) {
	of := " of processor " + quoted(p.Name.Value)
	names.add(b, p.Ident, claim{what: "the machine" + of}, p.Name)
	if p.Machine.Kind == FSM || p.Machine.Log != nil || p.Machine.Raft != nil {
		names.add(b, "New"+p.Ident, claim{what: "the constructor" + of}, p.Name)
	}
	if p.Machine.Kind == FSM && (p.Machine.Log != nil || p.Machine.Raft != nil) {
		names.add(b, p.Ident+"Session", claim{what: "the session" + of}, p.Name)
	}
	if p.Instances > 1 {
		names.add(b, p.Ident+"Instances", claim{what: "the instances" + of}, p.Name)
	}
	result := p.Machine.Result
	if t, err := ParseType(result.Value); err != nil || t.Kind != NamedType || t.Import != "" || t.Predeclared() {
		result = Text{}
	}
	for _, t := range []Text{p.Machine.State, p.Machine.Update, result} {
		if local := localType(b.types[t.Value], t.Value); local != "" {
			names.add(b, local, claim{what: "the type " + quoted(t.Value), own: true}, t)
		}
	}
	for _, m := range append(p.Machine.Messages(), p.Machine.Events...) {
		names.add(b, p.Ident+m.Name, claim{what: "the message " + m.Name + of}, p.Name)
	}
}

func (b *builder) claimMessages(names claims) {
	ours := map[string]bool{}
	for _, p := range b.topology.Processors {
		if p.Machine != nil {
			for _, m := range append(p.Machine.Messages(), p.Machine.Events...) {
				ours[p.Ident+m.Name] = true // others may carry it too
			}
		}
	}
	for _, e := range b.topology.Edges {
		for _, m := range []Text{e.Message, e.Reply} {
			if m.Value == "" || b.found.broken[e.Pointer] || e.Implied {
				continue
			}
			if local := localType(b.types[m.Value], m.Value); local != "" && !ours[local] {
				names.add(b, local, claim{what: "the type of message " + quoted(m.Value), own: true}, m)
			}
		}
	}
}

// checkMethods reports methods of senders and of processors that meet.
func (b *builder) checkMethods(names claims) {
	t := b.topology
	sender, receiver := map[int]claims{}, map[int]claims{}
	in := func(m map[int]claims, i int) claims {
		if m[i] == nil {
			m[i] = claims{}
		}
		return m[i]
	}
	receive := func(to, from int, message, at Text) {
		name := Exported(message.Value)
		in(receiver, to).add(b, "Receive"+name, claim{what: "the handler of message " + quoted(message.Value)}, at)
		in(receiver, to).add(b, "Receive"+name+"From"+t.Processors[from].Ident,
			claim{what: fmt.Sprintf("the handler of message %s from %s", quoted(message.Value), t.Processors[from].Name.Value)}, at)
	}
	for _, e := range t.Edges {
		switch {
		case e.To < 0 || b.found.broken[e.Pointer]:
			continue
		case e.Every > 0:
			handler, at := claim{what: "the handler of the timer"}, e.ToText
			if e.Timer.Value != "" {
				handler, at = claim{what: fmt.Sprintf("the handler of timer %s on line %d", quoted(e.Timer.Value), e.At.Line)}, e.Timer
			}
			in(receiver, e.To).add(b, "Receive"+e.Tick(), handler, at)
			continue
		case e.From < 0:
			continue
		}
		from, to, message := t.Processors[e.From], t.Processors[e.To], Exported(e.Message.Value)
		names.add(b, "Edge"+from.Ident+to.Ident+message, claim{what: "the index of edge " + e.title()}, e.Message)
		in(sender, e.From).add(b, "Send"+message, claim{what: "what sends message " + quoted(e.Message.Value)}, e.Message)
		in(sender, e.From).add(b, "Send"+message+"To"+to.Ident, claim{what: fmt.Sprintf("what sends message %s to %s", quoted(e.Message.Value), to.Name.Value)}, e.Message)
		receive(e.To, e.From, e.Message, e.Message)
		if e.Reply.Value != "" && !from.External {
			receive(e.From, e.To, e.Reply, e.Reply)
		}
	}
	for from, to := range t.deadLetters() {
		if to >= 0 {
			in(receiver, to).add(b, "ReceiveDeadLetter", claim{what: "the handler of dead letters"}, t.Processors[from].OnError.DeadLetter)
		}
	}
}
