package nodetests_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/topogen/topogen/generated_test/clusteretcd"
	"github.com/topogen/topogen/runtime/pool"
)

// TestClusterEtcdOptions checks that the options of the topology file reach the engine, which reads the
// files of the certificate before it connects.
func TestClusterEtcdOptions(t *testing.T) {
	top, err := clusteretcd.New(clusteretcd.Processors{}, pool.Node("n1"), pool.NodeAddress("127.0.0.1:0"), pool.NodeDir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Run(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the node ended with the error %v", err)
	}
}
