package nodetests_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// TestClusterProcessesOneIsRemoved kills a node that has joined. The topology waits for it, although all
// messages are handled, and finishes after an operator has removed it.
func TestClusterProcessesOneIsRemoved(t *testing.T) {
	t.Parallel()
	c := prepare(t, fleetNodes)
	const one = fleetNodes - 1
	var first []string
	for i, address := range c.addresses[:one] {
		first = append(first, nodeName(i)+"="+address)
	}
	for i := range fleetNodes { // direct, so that the nodes answer operators
		c.launch(i, variableLinks+"="+direct, "TOPOGEN_NODES="+strings.Join(first, ","))
	}
	c.awaitStart()
	c.issue(c.ca, "ann", certs.ID{TrustDomain: domain, Topology: "clusterprocesses", Operator: "ann"})
	ann := &grpc.TLS{Cert: c.path("ann.crt"), Key: c.path("ann.key"), CA: c.path("ca.crt")}
	status := func(i int) cluster.Report {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r, err := cluster.Operate(ctx, c.addresses[i], ann, cluster.Command{Show: cluster.ShowStatus})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	detects := func(i int, state string) bool {
		for _, n := range status(i).Nodes {
			if n.Name == nodeName(one) {
				return n.Detector == state && n.State == "member"
			}
		}
		return false
	}
	remove := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := cluster.Remove(ctx, c.addresses[0], ann, cluster.Removal{Node: nodeName(one)})
		return err
	}
	for i := range one {
		c.await("the joined node at "+nodeName(i), func() bool { return detects(i, "alive") })
	}
	if err := remove(); err == nil || !strings.Contains(err.Error(), `node "n4" is alive`) {
		t.Fatalf("the removal of a node that is alive returned %v", err)
	}
	c.kill(one)
	c.finish()
	for i := range one {
		c.await("the death of the joined node at "+nodeName(i), func() bool { return detects(i, "dead") })
		c.await("the last message of "+nodeName(i), func() bool {
			for _, e := range status(i).Edges {
				if e.Pending > 0 || e.Sent == 0 {
					return false
				}
			}
			return true
		})
	}
	for i, p := range c.nodes[:one] {
		if p.hasEnded() {
			t.Fatalf("%s has ended without the node that was killed: %v", nodeName(i), p.err)
		}
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	c.checkAll()
	if text := c.nodes[0].output.String(); !strings.Contains(text, "an operator has removed a node from the address table node=n4") || !strings.Contains(text, "operator=ann") {
		t.Errorf("%s has logged\n%s", nodeName(0), text)
	}
}
