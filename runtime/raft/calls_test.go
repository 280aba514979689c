package raft_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// nodeFiles issues certificates of one authority.
func nodeFiles(t *testing.T) func(id certs.ID) grpc.TLS {
	t.Helper()
	dir := t.TempDir()
	ca, err := certs.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return func(id certs.ID) grpc.TLS {
		id.TrustDomain = "test"
		pair, err := ca.Issue(id, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, id.Topology+id.Node+id.Operator+id.Client)
		for end, b := range map[string][]byte{".crt": pair.Cert, ".key": pair.Key, ".ca": ca.Cert} {
			if err := os.WriteFile(name+end, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return grpc.TLS{Cert: name + ".crt", Key: name + ".key", CA: name + ".ca"}
	}
}

// answer repeats the request three times, or fails.
func answer(_ context.Context, request []byte, send func([]byte) error) error {
	if string(request) == "fail" {
		return errors.New("the request is refused")
	}
	for range 3 {
		if err := send(request); err != nil {
			return err
		}
	}
	return nil
}

// TestCalls: a node calls another one with the certificates of the group, and without any.
func TestCalls(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		files := nodeFiles(t)
		var ms []*machine
		for _, c := range overGRPC(t, "n1", "n2") {
			c.Called = answer
			if secure {
				own := files(certs.ID{Topology: "test", Node: c.Node})
				c.TLSCert, c.TLSKey, c.TLSCA = own.Cert, own.Key, own.CA
			}
			ms = append(ms, open(t, c))
		}
		m := ms[0]
		items(t, m) // there is a leader
		for _, size := range []int{0, 1, 256 << 10, 256<<10 + 1, 5 << 20} {
			request, parts := bytes.Repeat([]byte("x"), size), 0
			err := m.Call(t.Context(), "n2", request, func(part []byte) error {
				parts++
				if !bytes.Equal(part, request) {
					t.Errorf("%d bytes: a part has %d bytes", size, len(part))
				}
				return nil
			})
			if err != nil || parts != 3 {
				t.Errorf("%d bytes: %d parts, %v", size, parts, err)
			}
		}
		stop := errors.New("enough")
		for _, c := range []struct {
			node    string
			request []byte
			receive error
			want    string
		}{
			{"n2", []byte("fail"), nil, "the request is refused"},
			{"n9", nil, nil, `"n9" is not a member`},
			{"n2", []byte("x"), stop, "enough"},
			{"n2", make([]byte, 32<<20+1), nil, "at most"},
		} {
			if err := m.Call(t.Context(), c.node, c.request, func([]byte) error { return c.receive }); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.node, err, c.want)
			}
		}
	}
}

// TestCallsRefused: programs that are not nodes of the topology cannot call, and a node
// without a function to answer refuses.
func TestCallsRefused(t *testing.T) {
	t.Parallel()
	var ms []*machine
	for _, c := range overGRPC(t, "n1", "n2") {
		ms = append(ms, open(t, c))
	}
	m := ms[0]
	items(t, m)
	if err := m.Call(t.Context(), "n2", nil, nil); err == nil || !strings.Contains(err.Error(), `no group "lists" answers calls here`) {
		t.Error(err)
	}
	alone := open(t, raft.Config{Disk: newMemoryDisk(1)})
	if err := alone.Call(t.Context(), "alone", nil, nil); err == nil || !strings.Contains(err.Error(), "listen on their addresses") {
		t.Error(err)
	}
}

// TestNeighbor: the neighbor of a group has its own name and folder.
func TestNeighbor(t *testing.T) {
	peers := map[string]string{"n1": "127.0.0.1:7101", "n2": "127.0.0.1:7102"}
	m, err := raft.New(raft.Config{Topology: "test", Group: "lists", Instance: 1, Instances: 2, Node: "n1", Peers: peers, Dir: "./logs/", Forward: true, NoChecksums: true}, listsDefinition)
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Neighbor("promises")
	if err != nil || c.Group != "lists-promises" || c.Dir != "logs-promises" || c.Instance != 0 || c.Instances != 0 || c.Node != "n1" || len(c.Peers) != 2 || !c.NoChecksums {
		t.Errorf("%+v, %v", c, err)
	}
	if m, err = raft.New(raft.Config{Topology: "test", Group: "lists", Carried: true}, listsDefinition); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Neighbor("promises"); err == nil {
		t.Error("a group whose controller carries its messages must have no neighbor")
	}
}
