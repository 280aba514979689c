package nodetests_test

import (
	"syscall"
	"testing"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// TestClusterProcessesStrangers starts processes of a node that do not belong to the cluster. They are
// refused, the logs of both ends say why, and they handle no message. Then the right process
// of the node gets the messages that wait for it.
func TestClusterProcessesStrangers(t *testing.T) {
	t.Parallel()
	c := prepare(t, fleetNodes)
	const one = fleetNodes - 1
	for i := range one {
		c.launch(i)
	}
	other := c.authority("other", "other.org")
	for _, s := range []struct {
		name         string
		env          []string
		prints, peer string // what the process prints, and what the other nodes print
	}{
		{
			name: "another trust domain",
			env: append(c.issue(other, "domain", certs.ID{TrustDomain: "other.org", Topology: "clusterprocesses", Node: nodeName(one)}),
				"TOPOGEN_TRUST_DOMAIN=other.org", "TOPOGEN_TLS_CA="+c.path("other.crt")),
			prints: "certificate signed by unknown authority",
			peer:   "bad certificate",
		},
		{
			name: "another topology",
			env: append(c.issue(c.ca, "topology", certs.ID{TrustDomain: domain, Topology: "other", Node: nodeName(one)}),
				variableTopology+"=other"),
			prints: "want spiffe://example.org/other/n",
			peer:   "/other/n4 is not in the topology of this node",
		},
		{
			name:   "no certificate",
			env:    []string{"TOPOGEN_TLS_CERT=", "TOPOGEN_TLS_KEY=", "TOPOGEN_TLS_CA="},
			prints: "may require TLS, which this node does not use",
			peer:   "refused a connection", // the reasons of one host are printed once a minute
		},
	} {
		t.Run(s.name, func(t *testing.T) {
			printed := len(c.nodes[0].output.String())
			p := c.launch(one, s.env...)
			p.killed = true // it never begins to work, so it has no figures
			c.awaitOutput(p, s.prints)
			c.awaitOutput(c.nodes[0], s.peer)
			c.signal(p, syscall.SIGKILL)
			_ = c.ended(p)
			t.Logf("it prints:\n%sthe first node prints:\n%s", &p.output, c.nodes[0].output.String()[printed:])
			if n := c.handled(p); n > 0 {
				t.Errorf("it has handled messages: %d bytes of effects", n)
			}
		})
	}
	c.launch(one)
	c.awaitStart()
	c.finish()
	c.checkAll()
}
