package nodetests_test

import (
	"cmp"
	"os"
	"strings"

	"github.com/topogen/topogen/generated_test/clusterprocesses"
	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// variableLinks has the addresses at which the node reaches
// the others, as n1=host:port,n2=host:port: those of the links in the test process.
const variableLinks = "CLUSTERPROCESSES_LINKS"

// direct is the value of variableLinks for a node that opens its transport itself, without links.
const direct = "direct"

// variableTopology gives the node the name of another topology.
const variableTopology = "CLUSTERPROCESSES_TOPOLOGY"

// linked is a transport whose connections go through the links, whatever addresses the nodes
// tell each other.
type linked struct {
	transport.Transport
	links map[string]string
}

func (l linked) SetPeer(name, _ string) { l.Transport.SetPeer(name, l.links[name]) }

// runNode runs the node that the environment describes.
func runNode() error {
	links := os.Getenv(variableLinks)
	if links == direct {
		return clusterprocesses.RunNode()
	}
	t, err := listen(links)
	if err != nil {
		return err
	}
	defer t.Close()
	return clusterprocesses.RunNode(piper.NodeTransport(t))
}

// listen opens a transport whose connections go through links.
func listen(text string) (t linked, err error) {
	t.links = map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, address, _ := strings.Cut(pair, "=")
		t.links[name] = address
	}
	config := grpc.Config{
		Node: os.Getenv("TOPOGEN_NODE"), Topology: cmp.Or(os.Getenv(variableTopology), "clusterprocesses"), Version: "test",
		TrustDomain: os.Getenv("TOPOGEN_TRUST_DOMAIN"), Address: os.Getenv("TOPOGEN_ADDRESS"), Peers: t.links,
	}
	if cert := os.Getenv("TOPOGEN_TLS_CERT"); cert != "" {
		config.TLS = &grpc.TLS{Cert: cert, Key: os.Getenv("TOPOGEN_TLS_KEY"), CA: os.Getenv("TOPOGEN_TLS_CA")}
	}
	t.Transport, err = grpc.Listen(config)
	return t, err
}
