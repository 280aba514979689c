package raft_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestALogOfOtherKindIsNotPassedOver: after `raft` was added to the topology file or removed from
// it, a state machine does not start with an empty log next to its existing one.
func TestALogOfOtherKindIsNotPassedOver(t *testing.T) {
	for _, above := range []string{"one", "several"} {
		t.Chdir(memdir.Quick(t))
		alone := raft.Config{Dir: "./stock"}
		node := fastConfig(raft.Config{Dir: "./stock", Node: "n1", Peers: map[string]string{"n1": loopback.Addresses(t, 1)[0]}})
		first, second := alone, node
		want := "raft: ./stock holds the log of a state machine on one disk, and several nodes cannot use that log; name another path, or convert it: topoctl raft recover stock --node n1 --address " + node.Peers["n1"] + " --to NEWPATH --yes"
		if above == "several" {
			first, second = node, alone
			want = "raft: ./stock holds the log of a node among several, in n1, and a state machine on one disk cannot use that log; name another path, or convert it: topoctl raft recover stock/n1 --to NEWPATH --yes"
		}
		for range 2 { // the second time the log exists
			m := open(t, first)
			items(t, m)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tryOpen(second); fmt.Sprint(err) != want {
			t.Errorf("over the log of %s:\n%v\nwant %s", above, err, want)
		}
		if err := os.Rename("stock", "away"); err != nil {
			t.Fatal(err)
		}
		items(t, open(t, second))
	}
}

// TestLogsOfInstances: after the number of instances was changed, a state machine does not start
// with empty logs next to its existing ones.
func TestLogsOfInstances(t *testing.T) {
	t.Chdir(memdir.Quick(t))
	peers := map[string]string{"n1": loopback.Addresses(t, 1)[0]}
	kinds := []struct {
		what, who, folder string
		config            raft.Config
	}{
		{"a state machine on one disk", "a state machine on one disk", "", raft.Config{}},
		{"a node among several", "several nodes", "n1", raft.Config{Node: "n1", Peers: peers}},
		{"an instance among several", "several instances", "3", raft.Config{Instance: 3, Instances: 16}},
		{"an instance of a node among several", "several instances", "n1/3", raft.Config{Node: "n1", Peers: peers, Instance: 3, Instances: 16}},
	}
	for _, first := range kinds {
		c := fastConfig(first.config)
		c.Dir = "./stock"
		for range 2 { // the second time the log exists
			m := open(t, c)
			items(t, m) // waits: a node with an address listens for some time before it founds a group
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if info, err := os.Stat(filepath.Join("stock", first.folder, "wal")); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", first.what, err)
		}
		for _, second := range kinds {
			if second.what == first.what {
				continue
			}
			c := second.config
			c.Dir = "./stock"
			in := ""
			if first.folder != "" {
				in = ", in " + first.folder
			}
			advice := "move it away"
			switch {
			case first.folder == "" && second.folder == "n1":
				advice = "convert it: topoctl raft recover stock --node n1 --address " + peers["n1"] + " --to NEWPATH --yes"
			case first.folder == "n1" && second.folder == "":
				advice = "convert it: topoctl raft recover stock/n1 --to NEWPATH --yes"
			}
			want := fmt.Sprintf("raft: ./stock holds the log of %s%s, and %s cannot use that log; name another path, or %s", first.what, in, second.who, advice)
			if _, err := tryOpen(c); fmt.Sprint(err) != want {
				t.Errorf("over %s:\n%v\nwant %s", first.what, err, want)
			}
		}
		if c.Instances > 1 {
			c.Instances = 8
			const want = "raft: ./stock was written with instances: 16, and now there are 8, so keys would go to other instances; set it to 16 again, or name another path and propose the updates of the old log there: wal: "
			if _, err := tryOpen(c); !errors.Is(err, wal.ErrIdentity) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("with another number of instances: %v", err)
			}
		}
		if err := os.RemoveAll("stock"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTLSOfAConfig: the settings for TLS are completed, or an error names the missing one.
func TestTLSOfAConfig(t *testing.T) {
	const (
		cert = "TOPOGEN_RAFT_TLS_CERT (Config.TLSCert)"
		key  = "TOPOGEN_RAFT_TLS_KEY (Config.TLSKey)"
		ca   = "TOPOGEN_RAFT_TLS_CA (Config.TLSCA)"
	)
	for _, c := range []struct {
		topology      string
		cert, key, ca string
		domain        string
		want          string // after "raft: "; "": nothing is wrong
	}{
		{topology: "Bank"},
		{topology: "Bank", cert: "c", want: "TLS needs a certificate, its key and a CA; also set " + key + ", " + ca},
		{topology: "Bank", cert: "c", key: "k", want: "TLS needs a certificate, its key and a CA; also set " + ca},
		{topology: "Bank", key: "k", ca: "a", want: "TLS needs a certificate, its key and a CA; also set " + cert},
		{topology: "bank", cert: "c", key: "k", ca: "a"},
		{topology: "Bank", cert: "c", key: "k", ca: "a", domain: "example.org"},
		{topology: "Bank", cert: "c", key: "k", ca: "a"},
		{topology: "bank", cert: "c", key: "k", ca: "a", domain: "Bank", want: `trust_domain, or TOPOGEN_RAFT_TRUST_DOMAIN, whose default is the name of the topology in lower case: "Bank" is not a trust domain: use lower case letters, digits, '.', '-' and '_', as in example.org`},
	} {
		err := raft.Config{
			Topology: c.topology, Node: "n1", Peers: map[string]string{"n1": "127.0.0.1:1"}, Dir: filepath.Join(memdir.Quick(t), "log"),
			TLSCert: c.cert, TLSKey: c.key, TLSCA: c.ca, TrustDomain: c.domain,
		}.Complete()
		want := "<nil>"
		if c.want != "" {
			want = "raft: " + c.want
		}
		if fmt.Sprint(err) != want {
			t.Errorf("%+v:\n%v\nwant %s", c, err, want)
		}
	}
}

// TestInstancesBeforeTheGroup: the number of instances can be changed as long as no group was
// founded, because no keys were used.
func TestInstancesBeforeTheGroup(t *testing.T) {
	t.Parallel()
	c := fastConfig(raft.Config{Dir: memdir.Quick(t), Node: "n1", Peers: map[string]string{"n1": loopback.Addresses(t, 1)[0], "n2": "127.0.0.1:1"}, Instances: 8})
	for _, c.Instances = range []int{8, 16} {
		m, err := tryOpen(c)
		if err != nil {
			t.Fatalf("with %d instances: %v", c.Instances, err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.Peers = map[string]string{"n1": loopback.Addresses(t, 1)[0]}
	m := open(t, fastConfig(c))
	items(t, m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	c.Instances = 8
	if _, err := tryOpen(c); err == nil || !strings.Contains(err.Error(), "was written with instances: 16") {
		t.Errorf("with a group and another number: %v", err)
	}
}

// TestLostFilesOnOneDisk: on one disk no advice removes a log or names a command for members of
// a group. The updates of a log without its record can be recovered.
func TestLostFilesOnOneDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ gone, want string }{
		{"member", `the file "member", which identifies the node of this log, is missing from`},
		{"wal/*", "its log is gone. The state machine is on one disk: move "},
	} {
		virtually(t, func(t *testing.T, _ *inVirtualTime) {
			dir := memdir.Quick(t)
			n := raft.Config{Dir: filepath.Join(dir, "ledger")}
			m := open(t, n)
			if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(n.Dir, c.gone))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, file := range files {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			if _, err = tryOpen(n); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "raft remove") || strings.Contains(err.Error(), "empty the folder") || strings.Contains(err.Error(), "TOPOGEN_NODE") {
				t.Errorf("without %s: %v", c.gone, err)
			}
			if c.gone != "member" {
				return
			}
			if !strings.Contains(err.Error(), "topoctl raft recover "+n.Dir+" --to NEWPATH --yes") {
				t.Errorf("without %s: %v", c.gone, err)
			}
			if err := os.WriteFile(filepath.Join(n.Dir, "member"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err = tryOpen(n); err == nil || !strings.Contains(err.Error(), "cannot read "+filepath.Join(n.Dir, "member")) || !strings.Contains(err.Error(), "topoctl raft recover "+n.Dir) {
				t.Errorf("with a damaged record: %v", err)
			}
			found(t, n.Dir, filepath.Join(dir, "new"), "alone", "")
			m = open(t, raft.Config{Dir: filepath.Join(dir, "new")})
			if list := items(t, m); len(list) != 1 {
				t.Errorf("the recovered log has %v", list)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestEmptiedFolders: if files of a log are removed but their folders are not, the node does not
// continue as the same member with an empty log. If the record is removed, too, it is a new node.
func TestEmptiedFolders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gone []string
		want string // of the error; "": the node starts as a new one
	}{
		{[]string{"wal/*", "snap/*"}, "its log is gone. Remove the member (topoctl raft remove n1)"},
		{[]string{"wal/*.wal", "snap/*"}, "its log is gone. Remove the member (topoctl raft remove n1)"},
		{[]string{"wal/*", "snap/*", "member", "lock"}, ""},
		{[]string{"member"}, `the file "member", which identifies the node of this log, is missing from`},
	} {
		n := fastConfig(raft.Config{Dir: memdir.Quick(t), Node: "n1", Peers: map[string]string{"n1": loopback.Addresses(t, 1)[0]}})
		m := open(t, n)
		if _, err := m.Propose(t.Context(), appendTo{0, 1, -1}); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range c.gone {
			files, err := filepath.Glob(filepath.Join(n.Dir, "n1", pattern))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, file := range files {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
		}
		m, err := tryOpen(n)
		if c.want == "" {
			if err != nil {
				t.Fatalf("without %v: %v", c.gone, err)
			}
			if list := items(t, m); len(list) > 0 {
				t.Errorf("without %v: %v", c.gone, list)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("without %v: %v", c.gone, err)
			_ = m.Close()
		}
	}
}
