package plan

import (
	"fmt"
	"strings"

	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// claims maps the names of one scope, such as the methods of a sender, to the part of the
// topology that needs the name.
type claims map[string]claim

type claim struct {
	what string
	user bool // the user declares the name, so several parts of the topology may use it
}

// claim records that a part of the topology, at the position at, needs a name. It reports a
// name that another part needs too.
func (b *builder) claim(names claims, name string, next claim, at spec.Text) {
	first, taken := names[name]
	switch {
	case !taken:
		names[name] = next
	case first == next, first.user && next.user, b.collided[at.At]:
	default:
		b.collided[at.At] = true
		if next.user {
			b.plan.Collided = append(b.plan.Collided, name)
		}
		b.findings = append(b.findings, finding.New(finding.Generated, b.topology.File, at.At, at.Pointer,
			fmt.Sprintf("a Go name must have one meaning, but %s is both %s and %s", name, first.what, next.what), "rename one of them"))
	}
}

// checkNames reports names that two parts of the topology need. Generated names consist of
// several names, so different parts may need the same one: the edges "a -> to-b: M" and
// "a -> b: MToB", for example. Package bind checks for collisions with Go.
func (b *builder) checkNames() {
	methods := claims{}
	for _, name := range []string{"Run", "Tree", "Snapshot", "Stepper"} {
		methods[name] = claim{what: "a method that every topology has"}
	}
	client := claims{"Close": claim{what: "a method that every client has"}}
	if b.plan.Cluster != nil {
		methods["Cluster"] = claim{what: "the method that describes the cluster"}
	}
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		if b.plan.Cluster != nil && p.External {
			b.claim(client, p.Ident, claim{what: fmt.Sprintf("the method for processor %q", p.Name)}, b.topology.Processors[i].Name)
		}
		b.claim(methods, p.Ident, claim{what: fmt.Sprintf("the method for processor %q", p.Name)}, b.topology.Processors[i].Name)
		b.claimSends(p)
		if p.Machine == nil { // the runtime's type has the handlers of state machines
			b.claimHandlers(p)
		}
	}
	names := claims{}
	for _, n := range b.plan.Names() {
		b.claim(names, n.Ident, claim{what: b.plan.NameText(n)}, b.place(n))
	}
	b.users(func(name, what string, at spec.Text) { b.claim(names, name, claim{what, true}, at) })
}

func (b *builder) claimSends(p *Processor) {
	names := claims{}
	for _, s := range p.Sends {
		what := fmt.Sprintf("the method that sends message %q", s.Message)
		if s.Name != "Send"+spec.Exported(s.Message) {
			what += " to " + b.plan.Processors[b.plan.Edges[s.Edges[0]].To].Name
		}
		b.claim(names, s.Name, claim{what: what}, b.edge(s.Edges[0]))
	}
}

func (b *builder) claimHandlers(p *Processor) {
	names := claims{}
	for _, i := range p.Incoming {
		e, handlers := &b.plan.Edges[i], b.plan.Handlers(i)
		switch {
		case e.Timer != "":
			b.claim(names, handlers[0], claim{what: fmt.Sprintf("the handler of timer %q on line %d", e.Timer, b.topology.Edges[i].At.Line)}, b.edge(i))
		case e.From < 0:
			b.claim(names, handlers[0], claim{what: "the handler of the timer"}, b.edge(i))
		case e.DeadLetter:
			b.claim(names, handlers[1], claim{what: "the handler of dead letters"}, b.edge(i))
		default:
			what := fmt.Sprintf("the handler of message %q", e.Message)
			b.claim(names, handlers[1], claim{what: what}, b.edge(i))
			b.claim(names, handlers[0], claim{what: what + " from " + b.plan.Processors[e.From].Name}, b.edge(i))
		}
	}
}

// users calls add for each type of the package that the file names, with a description.
func (b *builder) users(add func(name, what string, at spec.Text)) {
	local := func(t TypeRef, what string, at spec.Text) {
		if t.Kind == Named && t.Name != "" && t.Import == "" {
			add(t.Name, what, at)
		}
	}
	for i := range b.plan.Processors {
		p, file := &b.plan.Processors[i], &b.topology.Processors[i]
		switch {
		case p.Machine != nil:
			for _, t := range []TypeRef{p.Machine.StateType, p.Machine.UpdateType, p.Machine.ResultType} {
				local(t, fmt.Sprintf("a type of processor %q", p.Name), file.Name)
			}
		case !p.External:
			local(p.Type, fmt.Sprintf("the type of processor %q", p.Name), file.Name)
		}
	}
	machineMessages := make(map[string]bool) // generated names, which other edges may carry
	for _, a := range b.plan.Aliases {
		machineMessages[a.Name] = strings.HasPrefix(a.What, "the message")
	}
	message := func(t TypeRef, name spec.Text) {
		if !machineMessages[t.Name] {
			local(t, fmt.Sprintf("the type of message %q", name.Value), name)
		}
	}
	for i := range b.topology.Edges {
		e, file := &b.plan.Edges[i], &b.topology.Edges[i]
		if e.From >= 0 {
			message(e.Type, file.Message)
		}
		message(e.ReplyType, file.Reply)
	}
}

// place is the position in the file of the processor or edge for which n is generated.
func (b *builder) place(n Name) spec.Text {
	switch {
	case n.Processor >= 0:
		return b.topology.Processors[n.Processor].Name
	case n.Edge >= 0:
		return b.edge(n.Edge)
	}
	return b.topology.Name
}

// edge is the position in the file of the text that distinguishes edge i from other edges.
func (b *builder) edge(i int) spec.Text {
	e := &b.plan.Edges[i]
	if e.DeadLetter {
		return b.topology.Processors[e.From].OnError.DeadLetter
	}
	if e.ReplyOf >= 0 {
		return b.topology.Edges[e.ReplyOf].Reply
	}
	file := &b.topology.Edges[i]
	switch {
	case e.Timer != "":
		return file.Timer
	case e.From < 0:
		return file.ToText
	}
	return file.Message
}
