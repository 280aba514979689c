package clusterprocesses

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/piper"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// variableLinks makes the test binary a node. It has the addresses at which the node reaches
// the others, as n1=host:port,n2=host:port: those of the links in the test process.
const variableLinks = "CLUSTERPROCESSES_LINKS"

func TestMain(m *testing.M) {
	if links := os.Getenv(variableLinks); links != "" {
		if err := runNode(links); err != nil {
			fmt.Fprintln(os.Stderr, os.Getenv("TOPOGEN_NODE"), "failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// linked is a transport whose connections go through the links, whatever addresses the nodes
// tell each other.
type linked struct {
	transport.Transport
	links map[string]string
}

func (l linked) SetPeer(name, _ string) { l.Transport.SetPeer(name, l.links[name]) }

// runNode runs the node that the environment describes, and writes its figures to a file.
func runNode(text string) error {
	links := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, address, _ := strings.Cut(pair, "=")
		links[name] = address
	}
	name := os.Getenv("TOPOGEN_NODE")
	t, err := grpc.Listen(grpc.Config{
		Node: name, Topology: "clusterprocesses", Version: "test", TrustDomain: domain, Address: os.Getenv("TOPOGEN_ADDRESS"), Peers: links,
		TLS: &grpc.TLS{Cert: os.Getenv("TOPOGEN_TLS_CERT"), Key: os.Getenv("TOPOGEN_TLS_KEY"), CA: os.Getenv("TOPOGEN_TLS_CA")},
	})
	if err != nil {
		return err
	}
	defer t.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	top, err := New(Processors{}, piper.NodeTransport(linked{t, links}), pool.DrainTimeout(time.Minute), pool.Workers(2))
	if err != nil {
		return err
	}
	result := top.Run(ctx)
	b, err := json.Marshal(top.Snapshot().Edges)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(os.Getenv(VariableDir), "figures-"+os.Getenv(VariableStart)), b, 0o600); err != nil {
		return err
	}
	return result
}
