package plan

import "github.com/topogen/topogen/spec"

// sends decides the methods of each processor's sender: Send<Message> for all outgoing
// edges with the message, and Send<Message>To<To> for one edge. Replies are results of
// handlers, so their edges have no method.
func (b *builder) sends() {
	for i := range b.plan.Processors {
		p := &b.plan.Processors[i]
		var order []string
		byMessage := make(map[string][]int)
		for _, e := range p.Outgoing {
			edge := &b.plan.Edges[e]
			if edge.ReplyOf >= 0 || edge.DeadLetter {
				continue
			}
			if byMessage[edge.Message] == nil {
				order = append(order, edge.Message)
			}
			byMessage[edge.Message] = append(byMessage[edge.Message], e)
		}
		for _, message := range order {
			edges := byMessage[message]
			p.Sends = append(p.Sends, b.send(p, message, "", edges))
			if p.Machine != nil {
				continue // only the runtime uses its sender
			}
			for _, e := range edges {
				to := b.plan.Processors[b.plan.Edges[e].To].Ident
				p.Sends = append(p.Sends, b.send(p, message, "To"+to, []int{e}))
			}
			for _, e := range edges {
				b.propose(p, e)
			}
		}
	}
}

// propose adds the method that proposes an update.
func (b *builder) propose(p *Processor, e int) {
	edge := &b.plan.Edges[e]
	to := &b.plan.Processors[edge.To]
	if m := to.Machine; m == nil || m.UpdateType.Name == "" || edge.Message != to.Ident+"Proposal" {
		return
	}
	s := b.send(p, edge.Message, "To"+to.Ident, []int{e})
	s.Name, s.Type, s.Proposes = "ProposeTo"+to.Ident, to.Machine.UpdateType, true
	p.Sends = append(p.Sends, s)
}

func (b *builder) send(p *Processor, message, suffix string, edges []int) Send {
	s := Send{
		Name:    "Send" + spec.Exported(message) + suffix,
		Message: message,
		Type:    b.plan.Edges[edges[0]].Type,
		Edges:   edges,
		Error:   p.External || p.Source(),
	}
	for _, e := range edges {
		if b.plan.Edges[e].Full == string(spec.Fail) || b.plan.Edges[e].Durable != nil {
			s.Error = true
		}
	}
	if b.plan.Edges[edges[0]].Durable != nil { // package spec makes sure that it is the only edge
		s.Start = "Start" + spec.Exported(message) + suffix
		if b.plan.Edges[edges[0]].Reply != "" {
			s.Ask = "Ask" + spec.Exported(message) + suffix
		}
		return s
	}
	if p.External && len(edges) == 1 && b.plan.Edges[edges[0]].Reply != "" {
		s.Ask = "Ask" + spec.Exported(message) + suffix
	}
	return s
}
