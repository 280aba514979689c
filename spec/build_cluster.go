package spec

import (
	"math"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

var clusterKeys = setters[Cluster]{
	"nodes":        (*builder).nodes,
	"dir":          func(b *builder, c *Cluster, v *Value) { c.Dir = b.folder(v, "./node") },
	"tls":          func(b *builder, c *Cluster, v *Value) { c.TLS = new(TLS); set(b, tlsKeys, c.TLS, v) },
	"trust_domain": func(b *builder, c *Cluster, v *Value) { c.TrustDomain = v.text() },
	"insecure":     func(b *builder, c *Cluster, v *Value) { c.Insecure = v.boolean() },
	"addresses":    func(b *builder, c *Cluster, v *Value) { c.Addresses = Addresses(v.Text) },
	"etcd":         (*builder).etcd,
	"membership": func(b *builder, c *Cluster, v *Value) {
		c.Membership.At, c.Membership.Pointer = v.At, v.Pointer
		set(b, membershipKeys, &c.Membership, v)
	},
	"fence":        func(b *builder, c *Cluster, v *Value) { c.Fence = Fence(v.Text) },
	"tie_breaker":  func(b *builder, c *Cluster, v *Value) { c.TieBreaker = v.text() },
	"retry":        (*builder).resend,
	"rebalance":    func(b *builder, c *Cluster, v *Value) { c.Rebalance = Rebalance(v.Text) },
	"neighborhood": func(b *builder, c *Cluster, v *Value) { c.Neighborhood = v.integer() },
}

var etcdKeys = setters[Etcd]{
	"endpoints": func(b *builder, e *Etcd, v *Value) {
		for _, item := range v.Items {
			if !b.found.exact[item.Pointer] {
				e.Endpoints = append(e.Endpoints, item.text())
			}
		}
	},
	"prefix": func(b *builder, e *Etcd, v *Value) { e.Prefix = v.text() },
	"tls":    func(b *builder, e *Etcd, v *Value) { e.TLS = new(TLS); set(b, tlsKeys, e.TLS, v) },
}

var membershipKeys = setters[Membership]{
	"profile":          func(b *builder, m *Membership, v *Value) { m.Profile = v.Text },
	"detector":         func(b *builder, m *Membership, v *Value) { m.Detector = v.Text },
	"interval":         func(b *builder, m *Membership, v *Value) { m.Interval = b.membershipTime(v) },
	"direct_timeout":   func(b *builder, m *Membership, v *Value) { m.DirectTimeout = b.membershipTime(v) },
	"indirect_timeout": func(b *builder, m *Membership, v *Value) { m.IndirectTimeout = b.membershipTime(v) },
	"helpers":          func(b *builder, m *Membership, v *Value) { m.Helpers = v.integer() },
	"suspicion":        func(b *builder, m *Membership, v *Value) { m.Suspicion = b.membershipTime(v) },
}

var resendKeys = setters[Resend]{
	"timeout": func(b *builder, r *Resend, v *Value) { r.Timeout = b.duration(v, timeoutMin) },
	"min":     func(b *builder, r *Resend, v *Value) { r.Min = b.duration(v, timeoutMin) },
	"max":     func(b *builder, r *Resend, v *Value) { r.Max = b.duration(v, timeoutMin) },
}

var placementKeys = setters[Placement]{
	"node": func(b *builder, p *Placement, v *Value) { p.Kind, p.Node = OnNode, v.text() },
	"role": func(b *builder, p *Placement, v *Value) { p.Role = v.text() },
}

func (b *builder) cluster(t *Topology, v *Value) {
	c := &Cluster{
		Addresses:    AddressesRaft,
		Membership:   Membership{Profile: defaultProfile, Detector: defaultDetector, Helpers: -1},
		Fence:        FenceMajority,
		Retry:        Resend{Timeout: defaultResendTimeout, Min: defaultResendMin, Max: defaultResendMax},
		Rebalance:    RebalanceMinimal,
		Neighborhood: defaultNeighborhood,
		At:           v.At, Pointer: v.Pointer,
	}
	set(b, clusterKeys, c, v)
	t.Cluster = c
}

// membershipTime reads a time of failure detection.
func (b *builder) membershipTime(v *Value) time.Duration {
	d := b.duration(v, timeoutMin)
	if d > memberTimeMax {
		b.found.add(finding.OutOfRange, v.At, v.Pointer, v.key()+" must be at most "+duration(memberTimeMax)+", got "+quoted(v.Text), "write a shorter duration")
	}
	return d
}

func (b *builder) nodes(c *Cluster, v *Value) {
	for _, f := range v.Fields {
		if !b.found.exact[f.Value.Pointer] {
			c.Nodes = append(c.Nodes, Peer{Name: f.Key, Address: f.Value.text()})
		}
	}
}

func (b *builder) etcd(c *Cluster, v *Value) {
	c.Etcd = &Etcd{At: v.At, Pointer: v.Pointer}
	set(b, etcdKeys, c.Etcd, v)
}

// resend reads the times of retry. A default adapts to the times that the file has.
func (b *builder) resend(c *Cluster, v *Value) {
	r := &c.Retry
	set(b, resendKeys, r, v)
	if v.field("max") == nil {
		r.Max = min(max(r.Max, r.Min), r.Timeout)
	}
	if v.field("min") == nil {
		r.Min = min(r.Min, r.Max)
	}
}

// placement reads a word, or a mapping.
func (b *builder) placement(p *Placement, v *Value) {
	p.Given, p.At, p.Pointer = true, v.At, v.Pointer
	if v.Kind == String {
		p.Kind = PlacementKind(v.Text)
		return
	}
	set(b, placementKeys, p, v)
}

// clusters fills in the defaults that depend on several parts of the file.
func (b *builder) clusters() {
	t := b.topology
	if t.Cluster == nil {
		return
	}
	if e := t.Cluster.Etcd; e != nil && e.Prefix.Value == "" {
		e.Prefix.Value = prefixRoot + t.Name.Value
	}
	if b.drain == nil { // messages for a node that is down are dropped after retry.timeout
		t.Pool.DrainTimeout = t.Cluster.Retry.Timeout + min(defaultDrainTimeout, math.MaxInt64-t.Cluster.Retry.Timeout)
	}
	for i := range t.Edges {
		if e := &t.Edges[i]; e.Delivery == "" && e.Every == 0 {
			e.Delivery = AtLeastOnce
		}
	}
	t.place()
}

// prefixRoot is the beginning of the default prefix of keys in etcd.
const prefixRoot = "/topogen/"
