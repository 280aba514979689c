package plan

import "slices"

// Facts are the facts that bind found in Go for an outline, by the indices of the outline.
type Facts struct {
	Processors []ProcessorFacts
	Edges      []EdgeFacts
	Wire       string // hash of the encoding of messages to processes; "": there are none
	Bound      bool   // every processor binds
}

// ProcessorFacts are the facts of one processor.
type ProcessorFacts struct {
	Calls
	Sends   []SendFacts // by Processor.Sends
	Machine MachineFacts
}

// Calls are the methods of a processor's type that the generated code calls, and its constructor.
type Calls struct {
	Receives []Receive // one for each element of Incoming, in that order
	Ping     *Method
	Serve    *Method
	Finish   *Method
	Init     *Method
	Close    *Method

	InputClosed, InputRecovered, ProcessorRestarted, AllInputsClosed *Method
	Track                                                            *Method // takes the tracker of its inputs

	New *Constructor // nil: the zero value
}

// SendFacts are the facts of one Send method.
type SendFacts struct {
	Clone    bool // the message is cloned for all receivers but the last
	Proposer bool // it sets the field Proposer to its instance, which receives the state machine's answer
}

// EdgeFacts are the facts of one edge.
type EdgeFacts struct {
	Key        *Selector // nil: as in the outline
	Pointerful bool      // the message's type holds pointers
	CloneAgain bool      // each attempt gets a Clone of the message, because another attempt or a dead letter may need it
	Joins      bool      // Ask collects the replies of several instances with the reply's method Aggregate
	ID         *Selector // of an execution of a durable edge; nil: as in the outline
	Per        *Selector // of its limit; nil: as in the outline
}

// MachineFacts are the facts of a state machine.
type MachineFacts struct {
	At      bool      // updates have UpdateAt, which also takes their position in the log
	Errors  []string  // error variables in the package of the update that keep their identity in a log
	Key     *Selector // key of an update; nil: as in the outline
	KeyType string    // of the key: "string", "int32", "[]byte"
}

// NewFacts returns empty facts for an outline.
func NewFacts(outline *Plan) *Facts {
	f := &Facts{Processors: make([]ProcessorFacts, len(outline.Processors)), Edges: make([]EdgeFacts, len(outline.Edges))}
	for i := range outline.Processors {
		f.Processors[i].Sends = make([]SendFacts, len(outline.Processors[i].Sends))
	}
	return f
}

// Complete makes the plan from an outline and its facts. It does not change them. If facts is
// nil, the plan is the outline.
func Complete(outline *Plan, facts *Facts) *Plan {
	if facts == nil {
		return outline
	}
	p := *outline
	p.Wire, p.Bound = facts.Wire, facts.Bound
	p.Processors, p.Edges, p.Groups = slices.Clone(p.Processors), slices.Clone(p.Edges), slices.Clone(p.Groups)
	for i := range p.Processors {
		p.Processors[i].complete(&facts.Processors[i])
	}
	for i := range p.Edges {
		e, f := &p.Edges[i], facts.Edges[i]
		e.Pointerful, e.CloneAgain, e.Joins = f.Pointerful, f.CloneAgain, f.Joins
		if f.Key != nil {
			e.Selector = *f.Key
		}
		if e.Durable != nil {
			e.Durable = e.Durable.complete(&f)
		}
		if m := p.Processors[e.To].Machine; m != nil && m.Keyed != nil && (e.Route == Key || e.Route == ID) {
			e.Selector = m.Keyed.proposed()
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		g.OnlyTimers = g.OnlyTimers && !slices.ContainsFunc(g.Processors, func(member int) bool {
			q := &p.Processors[member]
			return q.Ping != nil || q.Serve != nil
		})
	}
	return &p
}

func (p *Processor) complete(f *ProcessorFacts) {
	p.Sends = slices.Clone(p.Sends)
	for i := range p.Sends {
		p.Sends[i].Clone, p.Sends[i].Proposer = f.Sends[i].Clone, f.Sends[i].Proposer
	}
	if p.Machine == nil {
		p.Calls = f.Calls
		return
	}
	m := *p.Machine
	m.At, m.Errors, m.KeyType = f.Machine.At, f.Machine.Errors, f.Machine.KeyType
	if m.Keyed != nil && f.Machine.Key != nil {
		keyed := *m.Keyed
		keyed.Selector = *f.Machine.Key
		m.Keyed = &keyed
	}
	p.Machine = &m
}

// proposed is the key of a proposal: the key of the update in it.
func (s Selector) proposed() Selector {
	s.Access = append([]string{proposed}, s.Access...)
	s.Nils = slices.Clone(s.Nils)
	for i := range s.Nils {
		s.Nils[i]++
	}
	return s
}
