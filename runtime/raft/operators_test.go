package raft_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// roles returns the leader and the followers, once the leader has heard from all of them.
func roles(t *testing.T, ms []*machine) (leader *machine, followers []*machine) {
	t.Helper()
	if _, err := ms[0].Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		if m.Status().Role == "leader" {
			leader = m
		} else {
			followers = append(followers, m)
		}
	}
	if leader == nil || len(followers) != len(ms)-1 {
		t.Fatalf("%d followers", len(followers))
	}
	for slices.ContainsFunc(leader.Status().Members, func(m raft.MemberStatus) bool { return !m.Active }) {
		pause()
	}
	return leader, followers
}

// TestRunningMembersAreActive: a leader always shows members that run as active. etcd's code
// forgets at each check of the quorum which members it has heard.
func TestRunningMembersAreActive(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, _ := v.group()
		leader, _ := roles(t, ms)
		for range 500 { // 5 s of virtual time: several checks
			for _, m := range leader.Status().Members {
				if !m.Active {
					t.Fatalf("%s is not active", m.Name)
				}
			}
			pause()
		}
	})
}

// TestTransferLeader: a leader can transfer the leadership to any voter. A follower can only request
// the leadership for itself.
func TestTransferLeader(t *testing.T) {
	virtually(t, func(t *testing.T, v *inVirtualTime) {
		ms, _ := v.group()
		leader, followers := roles(t, ms)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a, b := followers[0].Status().Node, followers[1].Status().Node
		if err := followers[0].TransferLeader(ctx, b); !errors.Is(err, fsm.ErrNotLeader) {
			t.Errorf("a follower must not transfer to another node, got: %v", err)
		}
		if err := leader.TransferLeader(ctx, "n9"); !errors.Is(err, raft.ErrMembers) || err.Error() != "raft: n9 is not a member; the members are n1, n2, n3" {
			t.Errorf("a transfer to an unknown node: %v", err)
		}
		if err := leader.TransferLeader(ctx, a); err != nil {
			t.Error(err)
		}
		if err := followers[1].TransferLeader(ctx, b); err != nil {
			t.Error(err)
		}
		if got := followers[1].Status().Role; got != "leader" {
			t.Errorf("the follower that requested the leadership must lead, got the role %s", got)
		}
	})
}

// TestOperators: with TLS a node accepts commands only from operators of its topology.
func TestOperators(t *testing.T) {
	t.Parallel()
	dir := memdir.Quick(t)
	ca, err := certs.NewAuthority("test", time.Now()) // the name of the topology: the default
	if err != nil {
		t.Fatal(err)
	}
	files := func(id certs.ID) grpc.TLS {
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
	own := files(certs.ID{Topology: "test", Node: "n1"})
	c := overGRPC(t, "n1")[0]
	address := c.Peers["n1"]
	c.TLSCert, c.TLSKey, c.TLSCA = own.Cert, own.Key, own.CA
	items(t, open(t, c))
	for _, c := range []struct {
		who     string
		id      certs.ID
		allowed bool
	}{
		{"an operator", certs.ID{Topology: "test", Operator: "ann"}, true},
		{"a node", certs.ID{Topology: "test", Node: "n2"}, false},
		{"a client", certs.ID{Topology: "test", Client: "web"}, false},
		{"an operator of another topology", certs.ID{Topology: "other", Operator: "ann"}, false},
	} {
		tls := files(c.id)
		for _, do := range []string{"status", "snapshot"} {
			r, err := raft.Operate(t.Context(), address, &tls, raft.Command{Do: do})
			if (err == nil) != c.allowed || !c.allowed && (r.Groups != nil || r.Snapshot != 0) {
				t.Errorf("%s, %s: %+v, %v", c.who, do, r, err)
			}
		}
	}
	if r, err := raft.Operate(t.Context(), address, nil, raft.Command{Do: "status"}); err == nil {
		t.Errorf("a client without a certificate must be refused, got %+v", r)
	}
}

// TestTheFolderOfNodes: a node creates its folder. The parent folder must exist.
func TestTheFolderOfNodes(t *testing.T) {
	t.Parallel()
	dir := memdir.Quick(t)
	c := fastConfig(raft.Config{Node: "n1", Peers: map[string]string{"n1": loopback.Addresses(t, 1)[0]}, Dir: filepath.Join(dir, "log")})
	items(t, open(t, c))
	if _, err := os.Stat(filepath.Join(dir, "log", "n1", "wal")); err != nil {
		t.Error(err)
	}
	c.Peers = map[string]string{"n1": loopback.Addresses(t, 1)[0]}
	c.Dir = filepath.Join(dir, "not", "there")
	if _, err := tryOpen(c); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a parent folder: %v", err)
	}
}

// TestAProposalAtOnce: a state machine on one disk accepts proposals immediately after Start.
func TestAProposalAtOnce(t *testing.T) {
	for range 5 {
		m := open(t, raft.Config{Disk: newMemoryDisk(1)})
		if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Error(err)
		}
	}
}
