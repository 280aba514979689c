package gen_test

import (
	"fmt"
	"slices"
	"strings"
)

// section writes the section durable of some topologies.
func (r *randomTopology) section(b *strings.Builder) {
	if r.durable {
		b.WriteString("durable: {store: ./promises" + r.one("", ", lease: 10s", `, listen: "127.0.0.1:8001"`) + "}\n")
	}
}

// keeps reports whether an edge may be durable. No other edge has its sender and its message.
func (r *randomTopology) keeps(e randomEdge) bool {
	from, to := r.processors[e.from], r.processors[e.to]
	return r.durable && (from.external || from.blocking) && !from.isolated && to.blocking && !to.isolated && !r.hasMessage(e) && r.chance(70)
}

// hasMessage reports whether the sender of an edge sends its message along another one.
func (r *randomTopology) hasMessage(e randomEdge) bool {
	return slices.ContainsFunc(r.edges, func(f randomEdge) bool { return f.from == e.from && f.message == e.message })
}

// isTaken reports whether a durable edge excludes an edge.
func (r *randomTopology) isTaken(e randomEdge) bool {
	return slices.ContainsFunc(r.edges, func(f randomEdge) bool { return f.durable && f.from == e.from && f.message == e.message })
}

// durableEdge writes a durable edge.
func (r *randomTopology) durableEdge(b *strings.Builder, e randomEdge) {
	options := []string{fmt.Sprintf("message: M%d", e.message), "durable: true"}
	e.durable = true
	if r.processors[e.to].instances > 1 {
		options = append(options, r.one("key: ID", "key: Name", "key: Sub.ID", "key: Sum", "route: {id: ID}"))
	}
	if r.chance(50) {
		options = append(options, "id: "+r.one("ID", "Name", "Sub.ID", "Sum"))
	}
	if r.chance(60) {
		e.reply = r.IntN(randomMessages)
		options = append(options, fmt.Sprintf("reply: M%d", e.reply))
	}
	if r.chance(40) {
		options = append(options, "limit: "+r.one("{concurrency: 2}", "{rate: 100/s, per: Name}", "{concurrency: 1, rate: 3, per: Sub.ID}", "{concurrency: 1, per: Sum}"))
	}
	if r.chance(30) {
		options = append(options, "timeout: 24h")
	}
	r.edges = append(r.edges, e)
	fmt.Fprintf(b, "  - p%d -> p%d: {%s}\n", e.from, e.to, strings.Join(options, ", "))
}

// durableHandler writes the handler of a durable edge.
func (r *randomTopology) durableHandler(b *strings.Builder, e randomEdge, out string) {
	params, results := []string{"ctx durable.Context", "m " + r.one("", "*") + fmt.Sprintf("M%d", e.message)}, []string{"err error"}
	if out != "" && r.chance(60) {
		params = append(params, out)
	}
	if e.reply >= 0 {
		results = []string{fmt.Sprintf("r M%d", e.reply), "err error"}
	}
	fmt.Fprintf(b, "func (%sP%d) ReceiveM%dFromP%d(%s) (%s) { return }\n", r.one("*", ""), e.to, e.message, e.from, strings.Join(params, ", "), strings.Join(results, ", "))
}
