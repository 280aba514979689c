package raft_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft"
)

// TestPeersThatCannotBe: invalid peers are refused before anything is written.
func TestPeersThatCannotBe(t *testing.T) {
	free := loopback.Addresses(t, 2)
	for _, c := range []struct {
		node  string
		peers map[string]string
		want  string
	}{
		{"n1", map[string]string{"n1": free[0], "n2": free[0]}, "n1 and n2 have the same address (Config.Peers, TOPOGEN_RAFT_PEERS), " + free[0] + "; give each node its own"},
		{"n1", map[string]string{"n1": free[0], "n2": "host"}, `the address of n2 (Config.Peers, TOPOGEN_RAFT_PEERS) must be HOST:PORT, got "host"`},
		{"n1", map[string]string{"n1": free[0], "n2": "host:99999"}, `must be HOST:PORT, got "host:99999"`},
		{"n1", map[string]string{"n1": "127.0.0.1", "n2": free[1]}, `the address of n1 (Config.Peers, TOPOGEN_RAFT_PEERS) must be HOST:PORT, got "127.0.0.1"`},
		{"..", map[string]string{"..": free[0], "n2": free[1]}, `".." is not a name of a node`},
		{"a/b", map[string]string{"a/b": free[0], "n2": free[1]}, `"a/b" is not a name of a node`},
	} {
		dir := memdir.Quick(t)
		_, err := tryOpen(raft.Config{Dir: filepath.Join(dir, "ledger"), Node: c.node, Peers: c.peers})
		if !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v: %v\nwant %s", c.peers, err, c.want)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("%v: the folder must stay empty, got %v, %v", c.peers, files, err)
		}
	}
}
