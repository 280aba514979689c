package plan

import (
	"fmt"
	"strings"
)

// Identity describes what the nodes of a cluster must agree upon: names, numbers of
// instances, places, keys and types. Each line has the form "KIND NAME = VALUE, VALUE…".
// types are the lines of the types that go to other nodes. Nodes with the same lines work
// together, and all other settings may differ.
//
// A message between nodes has the numbers of its processors and of its edge, so that the
// lines have these numbers too.
func (p *Plan) Identity(types []string) []string {
	lines := []string{"topology " + p.Name + " ="}
	line := func(kind, name string, number int, values []string) {
		lines = append(lines, fmt.Sprintf("%s %s = %s", kind, name, strings.Join(append([]string{fmt.Sprintf("number %d", number)}, values...), ", ")))
	}
	for i := range p.Processors {
		line("processor", p.Processors[i].Name, i, p.placed(&p.Processors[i], i))
	}
	for i := range p.Edges {
		if p.Edges[i].From >= 0 { // a timer is on each node by itself
			line("edge", p.EdgeText(i), i, p.Edges[i].route())
		}
	}
	return append(lines, types...)
}

// placed says how many instances a processor has, and where.
func (p *Plan) placed(q *Processor, i int) []string {
	values := []string{fmt.Sprintf("%d instances", q.Instances)}
	switch {
	case q.External:
		values[0] = "external"
	case q.Instances == 1:
		values[0] = "1 instance"
	}
	if q.Machine != nil {
		values = append(values, "a state machine")
	}
	switch to := q.Placement; {
	case to.Kind == EveryNode:
		values = append(values, "on every node")
	case to.Kind == OnNode:
		values = append(values, "on node "+to.Node)
	case to.With != i:
		values = append(values, "with "+p.Processors[to.With].Name)
	}
	return values
}

// keyKinds are the names of the kinds of keys. Each kind has a hash function.
var keyKinds = [...]string{KeyString: "string", KeyBytes: "bytes", KeyInt: "int", KeyUint: "uint", KeyBool: "bool"}

// route says how an edge chooses the instance of its receiver, and names the type of its reply.
func (e *Edge) route() (values []string) {
	access := strings.Join(e.Access, ".")
	switch e.Route {
	case Key:
		values = append(values, "key "+access+" ("+keyKinds[e.KeyKind]+")")
	case Local:
		values = append(values, "route local")
	case ID:
		values = append(values, "id "+access)
	case Range:
		values = append(values, fmt.Sprintf("range of %d from %d", e.Count, e.Offset))
	case Broadcast:
		values = append(values, "broadcast")
	case ToNode:
		values = append(values, "node "+access)
	}
	if e.Reply != "" {
		values = append(values, "reply "+e.Reply)
	}
	if e.Durable != nil {
		values = append(values, "durable")
	}
	return values
}

// Together describes the settings that all running nodes must have in common, although they
// are not part of the identity: nodes that differ in them would use two address tables, or
// could not see whether the other one is alive, or would decide differently who continues.
func (c *Cluster) Together() string {
	text := "addresses " + c.Addresses
	if c.Etcd != nil {
		text += ", prefix " + c.Etcd.Prefix
	}
	text += ", detector " + c.Membership.Detector + ", fence " + c.Fence
	if c.TieBreaker != "" {
		text += ", tie_breaker " + c.TieBreaker
	}
	return text
}
