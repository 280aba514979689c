package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const trustDomain = "bank.example" // of the topology file

// authority makes the certificates of a bank's nodes.
type authority struct {
	*certs.Authority
	trusted []byte // this authority and the earlier ones
	dir     string
}

func newAuthority(dir string, before []byte) (*authority, error) {
	a, err := certs.NewAuthority(trustDomain, time.Now())
	if err != nil {
		return nil, err
	}
	return &authority{a, slices.Concat(before, a.Cert), dir}, nil
}

// trust makes all nodes trust this authority.
func (a *authority) trust() error { return replace(filepath.Join(a.dir, "ca.crt"), a.trusted) }

// issue replaces the certificate of a node.
func (a *authority) issue(node string) error {
	pair, err := a.Issue(certs.ID{TrustDomain: trustDomain, Topology: "bank", Node: node}, time.Now(), time.Hour)
	if err != nil {
		return err
	}
	path := filepath.Join(a.dir, node)
	if err := replace(path+".key", pair.Key); err != nil {
		return err
	}
	return replace(path+".crt", pair.Cert)
}

func replace(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// TestCertificatesRotated replaces certificates under load, and with several rotations
// also their authority. No request fails, there is no election, and each rotation
// renews each connection once.
func TestCertificatesRotated(t *testing.T) {
	speed.Landing(t)
	rotations := speed.Pick(t, 0, 1, 6)
	c := demo(t, 3, false)
	ca, err := newAuthority(c.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.trust(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		if err := ca.issue(n.name); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(c.dir, n.name)
		n.environ = append(n.environ, raft.VariableCert+"="+path+".crt", raft.VariableKey+"="+path+".key", raft.VariableCA+"="+filepath.Join(c.dir, "ca.crt"))
	}

	ctx, done := context.WithTimeout(t.Context(), time.Minute+time.Duration(rotations)*20*time.Second)
	defer done()
	// All connections after the first ones that exist long enough to be seen.
	var first map[string]bool
	seen := make(map[string]bool)
	see := func() {
		for name := range connections(c) {
			if !first[name] {
				seen[name] = true
			}
		}
	}
	rotated := make(chan error, 1)
	go func() {
		defer done()
		rotated <- func() error {
			for _, n := range c.nodes {
				if err := await(ctx, n.name, func() bool { return n.serves() != "" }); err != nil {
					return err
				}
			}
			if err := await(ctx, "connections", func() bool { return len(connections(c)) == 6 || runtime.GOOS != "linux" }); err != nil {
				return err
			}
			first = connections(c)
			for i := range rotations {
				if err := rotate(ctx, t, c, &ca, i, see); err != nil {
					return err
				}
			}
			return await(ctx, "new connections", func() bool {
				see()
				return len(seen) >= 6*rotations || runtime.GOOS != "linux"
			})
		}()
	}()
	w, err := watchCluster(ctx, &screen{out: t.Output()}, c, options{nodes: 3, clients: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-rotated; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rotations, %d new connections", rotations, len(seen))
	if n := w.load.retries.Load() + w.load.unknown.Load(); n > 0 {
		t.Errorf("%d requests failed", n)
	}
	if most := 12 * rotations; len(seen) > most { // both ends of a connection may renew it, one after the other
		t.Errorf("%d new connections, want at most %d", len(seen), most)
	}
	if _, most := logsHold(t, c, "became leader at term 3"); most > 0 {
		t.Error("there was another election")
	}
	if _, most := logsHold(t, c, "level=ERROR"); most > 0 {
		t.Error("the logs contain errors")
	}
	if t.Failed() {
		for _, n := range c.nodes {
			b, _ := os.ReadFile(c.logOf(n))
			t.Logf("%s:\n%s", n.name, b)
		}
	}
}

// rotate replaces all certificates, and waits until all nodes use the new ones. Every
// third time it first replaces the authority, which all nodes must trust before.
func rotate(ctx context.Context, t *testing.T, c *cluster, ca **authority, i int, see func()) error {
	const read = "certificates reloaded"
	use := func() error {
		before, _ := logsHold(t, c, read)
		return await(ctx, "new certificates in use", func() bool {
			see()
			least, _ := logsHold(t, c, read)
			return least > before
		})
	}
	if i%3 == 1 {
		next, err := newAuthority(c.dir, (*ca).trusted)
		if err != nil {
			return err
		}
		*ca = next
		if err := next.trust(); err != nil {
			return err
		}
		return use()
	}
	for _, n := range c.nodes {
		if err := (*ca).issue(n.name); err != nil {
			return err
		}
	}
	return use()
}

// connections returns the connections between the nodes, if the system lists them.
// Three nodes have six, because each dials both others.
func connections(c *cluster) map[string]bool {
	b, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return nil
	}
	peers, _ := c.peers(len(c.nodes))
	ports := make(map[string]bool)
	for pair := range strings.SplitSeq(peers, ",") {
		port, _ := strconv.Atoi(pair[strings.LastIndex(pair, ":")+1:])
		ports[fmt.Sprintf("%04X", port)] = true
	}
	const established = "01"
	found := make(map[string]bool)
	for line := range bytes.Lines(b) {
		var slot, local, remote, state string
		if _, err := fmt.Sscan(string(line), &slot, &local, &remote, &state); err != nil || state != established {
			continue
		}
		if _, port, _ := strings.Cut(remote, ":"); ports[port] {
			found[local+" "+remote] = true
		}
	}
	return found
}
