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

	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const trustDomain = "bank.example" // of the topology file

// authority makes the certificates of a bank's nodes.
type authority struct {
	*certs.Authority
	trusted []byte // this one, and those before it
	dir     string
}

func newAuthority(dir string, before []byte) (*authority, error) {
	a, err := certs.NewAuthority(trustDomain, time.Now())
	if err != nil {
		return nil, err
	}
	return &authority{a, slices.Concat(before, a.Cert), dir}, nil
}

// trust has all nodes trust this authority.
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

// TestCertificatesRotated replaces certificates under load, and their authority where
// there is time for it: no request fails, nobody is elected, and connections are made
// anew once for each time.
func TestCertificatesRotated(t *testing.T) {
	takesLong(t)
	rotations := 1
	if text := os.Getenv("TOPOGEN_BANK_ROTATIONS"); text != "" {
		var err error
		if rotations, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
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
	// All but the first connections, as long as they stand for a moment.
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
	if most := 12 * rotations; len(seen) > most { // both ends of a connection may want another, one after the other
		t.Errorf("%d new connections, at most %d would be needed", len(seen), most)
	}
	if _, most := logsHold(t, c, "became leader at term 3"); most > 0 {
		t.Error("there was another election")
	}
	if _, most := logsHold(t, c, "level=ERROR"); most > 0 {
		t.Error("the logs hold errors")
	}
	if t.Failed() {
		for _, n := range c.nodes {
			b, _ := os.ReadFile(c.logOf(n))
			t.Logf("%s:\n%s", n.name, b)
		}
	}
}

// rotate replaces all certificates, and waits until all nodes use the new ones.
// Every third time there is a new authority before, which all come to trust first.
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

// connections are those between the nodes, where the system tells: three nodes have
// six, as each dials both others.
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
