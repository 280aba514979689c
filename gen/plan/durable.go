package plan

import (
	"strings"
	"time"

	"github.com/topogen/topogen/spec"
)

// DurableRuntime is the import path of the runtime package with the names that durable
// functions need.
const DurableRuntime = "github.com/topogen/topogen/runtime/durable"

// Handle is the type of the handles that Start methods return for edge e.
func (e *Edge) Handle() TypeRef {
	reply := e.ReplyType
	if e.Reply == "" {
		reply = TypeRef{Kind: Named, Import: DurableRuntime, Name: "None"}
	}
	return TypeRef{Kind: Named, Import: DurableRuntime, Name: "Handle", Args: []TypeRef{reply}}
}

// Durable has the settings of a topology with durable edges.
type Durable struct {
	Store         string
	Nodes         string // the processor whose nodes keep the store; "": none
	Lease         time.Duration
	Listen        string // "": this process listens for no others
	Cert, Key, CA string // of Listen; "": not in the file
	Insecure      bool
}

// DurableEdge has the settings of a durable edge. Its messages are kept in a store, and a
// handler is a durable function.
type DurableEdge struct {
	Function string    // name of the handler in the store: api.orders.PlaceOrder
	ID       *Selector // identifies an execution; nil: each send gets a new id
	Limit    *Limit    // nil: none
}

// Limit bounds the executions of a durable edge in a process.
type Limit struct {
	Concurrency int // 0: not limited
	Rate        int // executions that begin in Every; 0: not limited
	Every       time.Duration
	Per         *Selector // nil: all executions share the limit
}

// DurableInputs reports whether the processor handles messages of durable edges.
func (p *Plan) DurableInputs(i int) bool { return p.anyDurable(p.Processors[i].Incoming) }

func (p *Plan) anyDurable(edges []int) bool {
	for _, e := range edges {
		if p.Edges[e].Durable != nil {
			return true
		}
	}
	return false
}

// durable adds the settings of durable edges.
func (b *builder) durable() {
	d := b.topology.Durable
	for i := range b.topology.Edges {
		file := &b.topology.Edges[i]
		if !file.Durable {
			continue
		}
		e := &DurableEdge{Function: file.FromText.Value + "." + file.ToText.Value + "." + file.Message.Value, ID: selectorOf(file.ID)}
		if l := file.Limit; l != nil {
			e.Limit = &Limit{Concurrency: l.Concurrency, Rate: l.Rate.Count, Every: l.Rate.Every, Per: selectorOf(l.Per)}
		}
		b.plan.Edges[i].Durable = e
		b.plan.Edges[i].Capacity = 0
		if d == nil || b.plan.Durable != nil {
			continue
		}
		b.plan.Durable = &Durable{Store: d.Store.Value, Lease: d.Lease, Listen: d.Listen.Value, Insecure: d.Insecure}
		if d.RaftTo >= 0 {
			b.plan.Durable.Nodes = d.Raft.Value
		}
		if d.TLS != nil {
			b.plan.Durable.Cert, b.plan.Durable.Key, b.plan.Durable.CA = d.TLS.Cert.Value, d.TLS.Key.Value, d.TLS.CA.Value
		}
	}
}

// selectorOf is the path to a field or method as the file has it; nil if it has none.
func selectorOf(field spec.Text) *Selector {
	if field.Value == "" {
		return nil
	}
	return &Selector{Access: strings.Split(field.Value, ".")}
}

// complete makes the settings from those of the outline and the facts.
func (d *DurableEdge) complete(f *EdgeFacts) *DurableEdge {
	made := *d
	if f.ID != nil {
		made.ID = f.ID
	}
	if f.Per != nil {
		limit := *made.Limit
		limit.Per = f.Per
		made.Limit = &limit
	}
	return &made
}
