package addresses

import (
	"crypto/x509"
	"net/url"
	"os"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/topogen/topogen/generated_test/clusteretcd"
	"github.com/topogen/topogen/generated_test/clustertest"
	"github.com/topogen/topogen/runtime/pool"
)

// TestCluster runs a generated topology on three nodes whose address table is in an etcd with
// TLS. The topology file names the endpoint and the files of the certificate.
func TestCluster(t *testing.T) {
	t.Chdir(t.TempDir())
	startServerWithTLS(t)
	nodes := clustertest.RunCluster(t, 3, func(_ int, opts ...pool.Option) (*clusteretcd.Topology, error) {
		return clusteretcd.New(clusteretcd.Processors{}, opts...)
	}, func([]*clusteretcd.Topology) {})
	for i, top := range nodes {
		sink := top.Sink(0)
		if (sink != nil) != (i == 1) {
			t.Fatalf("node %d runs the sink: %v", i+1, sink != nil)
		}
		const n = clusteretcd.Items
		if sink != nil && (sink.Items != 3*n || sink.Sum != 3*n*(n+1)/2) {
			t.Errorf("the sink has got %+v", *sink)
		}
	}
}

// startServerWithTLS starts an etcd at the endpoint of the topology file, with the files that
// the file names, in the current folder.
func startServerWithTLS(t *testing.T) {
	t.Helper()
	client := url.URL{Scheme: "https", Host: "127.0.0.1:2379"}
	own, err := transport.SelfCert(zap.NewNop(), ".", []string{client.Host}, 1, x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"node.pem": own.CertFile, "ca.pem": own.CertFile, "node.key": own.KeyFile} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel = "etcd", t.TempDir(), "fatal"
	peer := listenAddress(t)
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ClientTLSInfo = transport.TLSInfo{CertFile: "node.pem", KeyFile: "node.key", TrustedCAFile: "ca.pem"}
	c.InitialCluster = c.Name + "=" + peer.String()
	s := &server{endpoint: client.String(), config: c}
	s.start(t)
	t.Cleanup(func() { s.Close() })
}
