package emit

import (
	"strconv"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/spec"
)

// Packages of the runtime for a topology on several nodes.
const (
	clusterPath = runtimePath + "cluster"
	tablePath   = runtimePath + "cluster/table/"
	memberPath  = runtimePath + "member"
	borderPath  = piperPath + "/border"
)

// clusterImports lists the packages that the code of a cluster imports.
func clusterImports(c *spec.Cluster) []string {
	return []string{borderPath, clusterPath, tablePath + string(c.Addresses), memberPath, detectorPath(c.Membership.Detector), wirePath}
}

// detectorPath is the package of a detector, whose function New makes it.
func detectorPath(detector string) string {
	if detector == "swim" {
		return memberPath
	}
	return memberPath + "/" + detector
}

func cluster(name Ident) *jen.Statement { return jen.Qual(clusterPath, string(name)) }
func member(name Ident) *jen.Statement  { return jen.Qual(memberPath, string(name)) }
func border(name Ident) *jen.Statement  { return jen.Qual(borderPath, string(name)) }

// openNode writes the method that makes the process a node.
//
//	func (t *Topology) openNode(s piper.NodeSettings) (piper.Border, error) {
//		n, err := cluster.Open(cluster.Config{
//			Topology: "clusteredges",
//			…
//		}, s)
//		if n == nil {
//			return nil, err
//		}
//		t.node = n
//		return border.New(n), nil
//	}
func (p *part) openNode() {
	if p.plan.Cluster == nil {
		return
	}
	t, node, err, s := p.v("t"), p.v("n"), p.v("err"), p.v("s")
	p.doc("openNode makes this process a node of the cluster. Without the name of a node, the process runs the whole topology.")
	p.method(t, "Topology", "openNode", []code{param(s, piper("NodeSettings"))}, []code{piper("Border"), jen.Error()},
		jen.List(id(node), id(err)).Op(":=").Add(cluster("Open")).Call(cluster("Config").Add(lines(p.clusterConfig(p.plan.Cluster))), id(s)),
		jen.If(id(node).Op("==").Nil()).Block(jen.Return(jen.Nil(), id(err))),
		set(sel(t, "node"), id(node)),
		jen.Return(border("New").Call(id(node)), jen.Nil()),
	)
}

// clusterConfig is the configuration of the nodes.
func (p *part) clusterConfig(c *plan.Cluster) fields {
	var processors, edges []code
	for _, q := range p.processors {
		processors = append(processors, jen.Values(q.placement()...))
	}
	for _, e := range p.edges {
		edges = append(edges, jen.Lit(p.plan.EdgeText(e.index)))
	}
	var nodes []code
	for _, n := range c.Nodes {
		nodes = append(nodes, key(strconv.Quote(n.Name), jen.Lit(n.Address)))
	}
	identity := p.plan.Identity(p.crossingTypes())
	var texts []code
	for _, line := range identity {
		texts = append(texts, jen.Lit(line))
	}
	f := fields{
		key("Topology", jen.Lit(p.plan.Name)),
		key("Plan", jen.Lit(plan.HashOf(identity))),
		key("Identity", jen.Index().String().Add(lines(texts))),
		key("Processors", jen.Index().Add(cluster("Processor")).Add(lines(processors))),
		key("Edges", jen.Index().String().Add(lines(edges))),
		key("Nodes", jen.Map(jen.String()).String().Add(lines(nodes))),
	}
	text := func(name, value string) { f.when(value != "", name, jen.Lit(value)) }
	text("Dir", c.Dir)
	text("TLSCert", c.Cert)
	text("TLSKey", c.Key)
	text("TLSCA", c.CA)
	text("TrustDomain", c.TrustDomain)
	f.when(c.Insecure, "Insecure", jen.True())
	s := p.v("s")
	f = append(f,
		key("Table", jen.Qual(tablePath+c.Addresses, "Opener").Call(engineOptions(c)...)),
		key("Detect", jen.Func().Params(param(s, member("Settings"))).Params(member("Detector"), jen.Error()).Add(oneLine(jen.Return(jen.Qual(detectorPath(c.Membership.Detector), "New").Call(id(s)))))),
		key("Membership", member("Config").Values(membershipOf(c)...)),
		key("Retry", cluster("Retry").Values(key("Timeout", duration(c.RetryTimeout)), key("Min", duration(c.RetryMin)), key("Max", duration(c.RetryMax)))),
	)
	f.when(c.Rebalance == string(spec.RebalanceMinimal), "Rebalance", jen.True())
	return append(f, key("Neighborhood", jen.Lit(c.Neighborhood)), key("Together", jen.Lit(c.Together())))
}

// crossingTypes describes the messages that may go to another node.
func (p *part) crossingTypes() []string {
	if p.boundary == nil {
		return nil
	}
	return p.boundary.schema.Types(p.plan.Cluster.Messages)
}

// engineOptions are the arguments of the function that opens the address table.
func engineOptions(c *plan.Cluster) []code {
	e := c.Etcd
	if e == nil {
		return nil
	}
	var endpoints []code
	for _, endpoint := range e.Endpoints {
		endpoints = append(endpoints, jen.Lit(endpoint))
	}
	f := fields{key("Endpoints", jen.Index().String().Values(endpoints...)), key("Prefix", jen.Lit(e.Prefix))}
	f.when(e.Cert != "", "Cert", jen.Lit(e.Cert))
	f.when(e.Key != "", "Key", jen.Lit(e.Key))
	f.when(e.CA != "", "CA", jen.Lit(e.CA))
	return []code{jen.Qual(tablePath+c.Addresses, "Options").Values(f...)}
}

// placement is the description of a processor for the address table.
func (q *processor) placement() fields {
	f := fields{key("Name", jen.Lit(q.Name))}
	f.when(!q.External, "Instances", jen.Lit(q.Instances))
	switch q.Placement.Kind {
	case plan.EveryNode:
		f.when(true, "Placement", cluster("EveryNode"))
	case plan.OnNode:
		f.when(true, "Placement", cluster("OnNode"))
		f.when(true, "Node", jen.Lit(q.Placement.Node))
	}
	f.when(true, "With", jen.Lit(q.Placement.With))
	return f
}

// membershipOf are the settings of failure detection.
func membershipOf(c *plan.Cluster) fields {
	m := &c.Membership
	f := fields{key("Profile", jen.Lit(m.Profile))}
	f.when(m.Interval > 0, "Interval", duration(m.Interval))
	f.when(m.DirectTimeout > 0, "DirectTimeout", duration(m.DirectTimeout))
	f.when(m.IndirectTimeout > 0, "IndirectTimeout", duration(m.IndirectTimeout))
	f.when(m.Helpers != 0, "Helpers", jen.Lit(m.Helpers))
	f.when(m.Suspicion > 0, "Suspicion", duration(m.Suspicion))
	f.when(true, "Fence", jen.Lit(c.Fence))
	f.when(c.TieBreaker != "", "TieBreaker", jen.Lit(c.TieBreaker))
	return f
}
