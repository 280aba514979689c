package spec

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// checkCluster reports an invalid section cluster, and keys that need it.
func (b *builder) checkCluster() {
	b.checkLater()
	if b.section == nil {
		b.checkNoCluster()
		return
	}
	c, options := b.topology.Cluster, b.section.Value
	if c == nil { // the section is not a mapping
		return
	}
	b.checkNodes(c, options)
	if c.TLS != nil && c.Etcd == nil {
		b.noEffect(options, "tls is set", "remove one of them", "insecure")
	}
	b.checkEngine(c, options)
	if membership := options.field("membership"); membership != nil && c.Membership.Detector == detectorMemberlist {
		b.noEffect(membership.Value, "the detector is memberlist, which waits for other nodes until the end of the interval", `write "detector: swim", or remove it`, "indirect_timeout")
	}
	b.checkFence(c, options)
	b.checkResend(c, options)
	b.checkDrain(c)
	b.checkPlacements()
	b.checkTable()
	b.checkDeliveries()
}

// checkTable reports more processors or instances than an address table has room for. Instances
// on every node are not in the table, and processors that are placed together share entries.
func (b *builder) checkTable() {
	processors, instances := 0, 0
	for i, p := range b.topology.Processors {
		if p.Placement.Kind != EveryNode && p.Placement.With == i {
			processors, instances = processors+1, instances+p.Instances
		}
	}
	at := b.section.Key
	switch {
	case processors > placedMax:
		b.found.addText(finding.Limit, at, fmt.Sprintf("the address table of a cluster must have at most %d processors, got %d", placedMax, processors), `write "placement: every-node" for some of them, or join them by edges with "route: local"`)
	case instances > placedInstances:
		b.found.addText(finding.Limit, at, fmt.Sprintf("the address table of a cluster must have at most %d instances, got %d", placedInstances, instances), "write fewer instances")
	}
}

// checkLater reports names that are reserved for a later version.
func (b *builder) checkLater() {
	for i, p := range b.topology.Processors {
		if f := b.entries[i].field("checkpoint"); f != nil && !p.External && p.Machine == nil {
			b.reserved(f.Key, "checkpoint is", "remove it")
		}
		if p.Placement.Role.Pointer != "" {
			b.reserved(p.Placement.Role, "the placement on nodes with a role is", `write spread, every-node or "node: NAME"`)
		}
	}
	if c := b.topology.Cluster; c != nil && c.Rebalance == RebalanceLoad {
		f := b.section.Value.field("rebalance")
		b.reserved(f.Value.text(), `"rebalance: load" is`, "write none or minimal-move")
	}
}

func (b *builder) reserved(at Text, what, suggestion string) {
	if !b.found.exact[at.Pointer] {
		b.found.addText(finding.Reserved, at, what+" reserved for a later version of topogen", suggestion)
	}
}

// checkNoCluster reports keys that need the section cluster.
func (b *builder) checkNoCluster() {
	for i, p := range b.topology.Processors {
		if f := b.entries[i].field("placement"); f != nil && !p.External && p.Machine == nil {
			b.noCluster(f.Key, "placement")
		}
	}
	for i := range b.topology.Edges {
		if f := b.option(i, "delivery"); f != nil {
			b.noCluster(f.Key, "delivery")
		}
	}
}

func (b *builder) noCluster(at Text, what string) {
	if !b.found.broken[at.Pointer] {
		b.found.addText(finding.NoCluster, at, what+" must go with the section cluster, and the file has none", "add the section, or remove it")
	}
}

// checkNodes reports too many nodes, and invalid and equal addresses.
func (b *builder) checkNodes(c *Cluster, options *Value) {
	f := options.field("nodes")
	if f == nil || b.found.exact[f.Value.Pointer] {
		return
	}
	n := len(f.Value.Fields)
	switch {
	case n > nodesOfCluster:
		b.found.addText(finding.Nodes, f.Value.Fields[nodesOfCluster].Key, fmt.Sprintf("cluster must have at most %d nodes, got %d", nodesOfCluster, n), "remove it; further nodes join while the topology runs")
	case n > nodesOfRaft && c.Addresses == AddressesRaft:
		b.found.addText(finding.Nodes, f.Value.Fields[nodesOfRaft].Key, fmt.Sprintf("a cluster with addresses raft must have at most %d nodes, got %d", nodesOfRaft, n), `remove it, or write "addresses: etcd"`)
	}
	seen := map[string]Text{}
	for _, node := range c.Nodes {
		at := node.Address
		host, port, err := net.SplitHostPort(at.Value)
		number, badPort := strconv.ParseUint(port, 10, 16)
		ip := net.ParseIP(host)
		switch first, twice := seen[at.Value]; {
		case len(at.Value) > addressMax:
			b.longAddress(finding.Nodes, "node", at)
		case err != nil || host == "" || badPort != nil || number == 0:
			b.found.addText(finding.Nodes, at, "the address of a node must have the form host:port, got "+quoted(at.Value), `write an address such as "127.0.0.1:7400"`)
		case ip != nil && ip.IsUnspecified():
			b.found.addText(finding.Nodes, at, "the address of a node must be one that other nodes can dial, got "+quoted(at.Value), "write the address of the host")
		case twice:
			b.found.addText(finding.Nodes, at, fmt.Sprintf("each node must have its own address, but %s and %s share one", quoted(first.Value), quoted(node.Name.Value)), "give each node its own address")
		}
		seen[at.Value] = node.Name
		b.nodeNames[node.Name.Value], b.nodeAddresses[at.Value] = true, node.Name.Value
	}
}

// checkEngine reports settings of etcd that are missing, invalid or without effect.
func (b *builder) checkEngine(c *Cluster, options *Value) {
	if b.found.exact[c.Pointer+"/addresses"] {
		return
	}
	addresses, etcd := options.field("addresses"), options.field("etcd")
	switch {
	case c.Addresses == AddressesEtcd && etcd == nil:
		b.found.add(finding.MissingKey, addresses.Value.At, c.Pointer, "addresses is etcd, so cluster must have the key etcd", `write "etcd: {endpoints: [URL]}"`)
	case c.Addresses != AddressesEtcd:
		b.noEffect(options, fmt.Sprintf("addresses is %s", c.Addresses), `write "addresses: etcd", or remove it`, "etcd")
	case c.Etcd != nil:
		b.checkEtcd(c.Etcd, etcd.Value)
	}
}

// checkEtcd reports invalid and equal endpoints, and an incomplete or useless tls.
func (b *builder) checkEtcd(e *Etcd, options *Value) {
	seen, plain := map[string]bool{}, 0
	for _, at := range e.Endpoints {
		u, err := url.Parse(at.Value)
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || strings.TrimSuffix(at.Value, "/") != u.Scheme+"://"+u.Host:
			b.found.addText(finding.Endpoint, at, "an endpoint of etcd must have the form https://host:port or http://host:port, got "+quoted(at.Value), `write a URL such as "https://10.0.0.9:2379"`)
		case seen[u.Host]:
			b.found.addText(finding.Endpoint, at, "an endpoint of etcd must appear once, got "+quoted(at.Value)+" again", "remove one of them")
		case u.Scheme == "http":
			plain++
		}
		if err == nil {
			seen[u.Host] = true
		}
	}
	tls := options.field("tls")
	if tls == nil || b.found.exact[tls.Value.Pointer] {
		return
	}
	if plain > 0 && plain == len(e.Endpoints) {
		b.noEffect(options, "all endpoints begin with http://", "write https:// in the endpoints, or remove it", "tls")
	}
	cert, key := tls.Value.field("cert"), tls.Value.field("key")
	if (cert == nil) != (key == nil) {
		has, lacks := cert, "key"
		if cert == nil {
			has, lacks = key, "cert"
		}
		b.found.add(finding.MissingKey, has.Key.At, tls.Value.Pointer, fmt.Sprintf("%s must go with %s", has.Key.Value, lacks), "write both, or neither")
	}
}

// checkFence reports two nodes of which neither alone is a majority, and a tie breaker that is
// not a node or has no effect.
func (b *builder) checkFence(c *Cluster, options *Value) {
	nodes, tie := options.field("nodes"), options.field("tie_breaker")
	if b.found.broken[c.Pointer+"/nodes"] || b.found.exact[c.Pointer+"/fence"] {
		return
	}
	switch {
	case c.Fence == FenceOff:
		b.noEffect(options, "fence is off", `write "fence: majority", or remove it`, "tie_breaker")
	case tie != nil && !b.found.exact[tie.Value.Pointer]:
		b.checkNode(c.TieBreaker)
	case tie == nil && len(c.Nodes) == 2:
		b.found.add(finding.TieBreaker, nodes.Key.At, c.Pointer+"/fence", "a cluster of two nodes must say which node continues without the other: one of two is no majority",
			fmt.Sprintf("write %q, or \"fence: off\"", "tie_breaker: "+clip(c.Nodes[0].Name.Value)))
	}
}

// checkNode reports the name of a node that the cluster does not have.
func (b *builder) checkNode(name Text) {
	c := b.topology.Cluster
	if b.nodeNames[name.Value] || len(c.Nodes) == 0 || b.found.broken[c.Pointer+"/nodes"] { // the name may be in a broken part
		return
	}
	if b.nodeList == nil { // once, because a file may have many unknown names
		b.nodeList = slices.Sorted(maps.Keys(b.nodeNames))
	}
	suggestion := "add it under nodes"
	if best := b.similar.to(name.Value, b.nodeList); best != "" {
		suggestion = didYouMean(best)
	}
	b.found.addText(finding.NoNode, name, "node "+quoted(name.Value)+" is not a node of the cluster", suggestion)
}

// checkResend reports times of retry that contradict each other.
func (b *builder) checkResend(c *Cluster, options *Value) {
	retry := options.field("retry")
	if retry == nil || b.found.broken[retry.Value.Pointer] {
		return
	}
	shortest, longest := retry.Value.field("min"), retry.Value.field("max")
	if longest == nil { // it has adapted
		b.checkOrder(shortest, c.Retry.Min, "timeout", c.Retry.Timeout)
		return
	}
	b.checkOrder(shortest, c.Retry.Min, "max", c.Retry.Max)
	b.checkOrder(longest, c.Retry.Max, "timeout", c.Retry.Timeout)
}

// checkDrain reports a drain that may end before the messages for a node that is down are dropped. Then
// Run returns an error. With drain_timeout 0 nothing is drained.
func (b *builder) checkDrain(c *Cluster) {
	if got := b.topology.Pool.DrainTimeout; b.drain != nil && got > 0 && got <= c.Retry.Timeout && !b.found.broken[c.Pointer] {
		b.found.add(finding.Times, b.drain.At, b.drain.Pointer, fmt.Sprintf("drain_timeout must be above cluster.retry.timeout, which is %s, or 0, got %s", duration(c.Retry.Timeout), duration(got)),
			"write a longer drain_timeout, or a shorter timeout")
	}
}

// checkOrder reports a time that is longer than its limit.
func (b *builder) checkOrder(f *Field, got time.Duration, limit string, longest time.Duration) {
	if f == nil || got <= longest {
		return
	}
	name := f.Key.Value
	b.found.add(finding.Times, f.Value.At, f.Value.Pointer, fmt.Sprintf("%s must be at most %s, which is %s, got %s", name, limit, duration(longest), duration(got)), "write a shorter "+name+", or a longer "+limit)
}

// checkDeliveries reports delivery on an edge whose messages never leave their node.
func (b *builder) checkDeliveries() {
	for i := range b.topology.Edges {
		e := &b.topology.Edges[i]
		f := b.option(i, "delivery")
		if f == nil || e.Every > 0 || b.found.broken[e.Pointer] || e.From < 0 || e.To < 0 || b.misplaced(e.From) || b.misplaced(e.To) || b.topology.Crosses(e) {
			continue
		}
		b.found.addText(finding.NoEffect, f.Key, "delivery has no effect: the messages of this edge never leave their node", "remove it")
	}
}

// misplaced reports whether the placement of a processor has a finding, so that conclusions
// from it could be wrong.
func (b *builder) misplaced(processor int) bool {
	p := &b.topology.Processors[processor]
	return b.found.broken[p.Pointer+"/placement"] || b.found.broken[p.Pointer+"/instances"] || b.found.broken[p.Pointer+"/external"]
}

// checkExposed warns of nodes on several hosts without TLS.
func (b *builder) checkExposed() {
	c := b.topology.Cluster
	if c == nil || c.Insecure {
		return
	}
	for _, node := range c.Nodes {
		host, _, _ := net.SplitHostPort(node.Address.Value)
		if c.TLS == nil && !isLoopback(host) {
			b.found.addText(finding.Exposed, node.Address, fmt.Sprintf("without tls a node must have a loopback address, got %s", quoted(node.Address.Value)), `write tls, or "insecure: true" for a network that you trust; a node may also get its certificate when it starts`)
			break
		}
	}
	if c.Etcd == nil {
		return
	}
	for _, endpoint := range c.Etcd.Endpoints {
		if u, err := url.Parse(endpoint.Value); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
			b.found.addText(finding.Exposed, endpoint, "without TLS etcd must have a loopback address, got "+quoted(endpoint.Value), `write https://, or "insecure: true" for a network that you trust`)
			break
		}
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
