package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"
)

// client writes the type of a process outside the cluster that sends messages to it, if the
// topology has external processors.
//
//	type Client struct {
//		topology *Topology
//		running  *cluster.Client
//	}
//
//	func NewClient(c cluster.ClientConfig) (*Client, error) {
//		t, err := New(Processors{}, cluster.AsClient(c))
//		if err != nil {
//			return nil, err
//		}
//		x := &Client{topology: t}
//		if x.running, err = cluster.StartClient(t.node, t.Run); err != nil {
//			return nil, err
//		}
//		return x, nil
//	}
//
//	func (c *Client) Close() error { return c.running.Close() }
func (p *part) client() {
	if p.plan.Cluster == nil || !slices.ContainsFunc(p.processors, func(q *processor) bool { return q.External }) {
		return
	}
	c, t, err, x := p.v("c"), p.v("t"), p.v("err"), p.v("x")
	fail := func() code { return jen.Block(jen.Return(jen.Nil(), id(err))) }
	p.doc("Client sends messages to the nodes of %s from a process outside the cluster. Any number of goroutines may use it.", p.plan.Name)
	p.add(jen.Type().Id("Client").Struct(param("topology", ptr("Topology")), param("running", pointer(cluster("Client")))))
	p.doc("NewClient connects to the cluster. It returns when a node has answered, or an error if none has answered in time.")
	p.add(jen.Func().Id("NewClient").Params(param(c, cluster("ClientConfig"))).Params(ptr("Client"), jen.Error()).Block(
		jen.List(id(t), id(err)).Op(":=").Id("New").Call(jen.Id("Processors").Values(), cluster("AsClient").Call(id(c))),
		jen.If(id(err).Op("!=").Nil()).Add(fail()),
		define(x, jen.Op("&").Id("Client").Values(key("topology", id(t)))),
		jen.If(jen.List(sel(x, "running"), id(err)).Op("=").Add(cluster("StartClient")).Call(sel(t, "node"), sel(t, "Run")), id(err).Op("!=").Nil()).Add(fail()),
		jen.Return(id(x), jen.Nil()),
	))
	method := func(name Ident, result code, body code) {
		p.short(c, "Client", name, nil, []code{result}, jen.Return(body))
	}
	for _, q := range p.processors {
		if q.External {
			p.doc("%s returns the sender of %s.", q.ident, q.Name)
			method(q.ident, ptr(q.sender), ref(c, "topology", q.field))
		}
	}
	p.doc("Close refuses further messages, and waits until all accepted ones are handled or dropped, at most for the drain timeout. " +
		"It returns an error if messages remain.")
	method("Close", jen.Error(), sel(c, "running", "Close").Call())
	p.doc("Snapshot returns the current counts of messages, by index. Each accepted message is handled, dropped or pending.")
	method("Snapshot", pool("Snapshot"), sel(c, "topology", "Snapshot").Call())
	p.doc("Cluster returns what this client knows about the cluster.")
	method("Cluster", pointer(cluster("View")), sel(c, "running", "View").Call())
}
