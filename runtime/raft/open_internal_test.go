package raft

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// oneNumber is the type of a state and of its update.
type oneNumber struct{ n byte }

// TestElectionTicks: an election timeout is not shorter than its setting.
func TestElectionTicks(t *testing.T) {
	for timeout, want := range map[time.Duration]int{200 * time.Millisecond: 2, 290 * time.Millisecond: 3, time.Second: 10} {
		if got := (&Config{ElectionTimeout: timeout, Heartbeat: 100 * time.Millisecond}).electionTicks(); got != want {
			t.Errorf("%v must be %d heartbeats of 100ms, got %d", timeout, want, got)
		}
	}
}

// numbers is the definition of a state machine that adds numbers.
var numbers = fsm.Definition[oneNumber, oneNumber, struct{}]{
	Update:     fsm.NoResult(func(u *oneNumber, s *oneNumber) error { s.n += u.n; return nil }),
	StateCodec: numberCodec, UpdateCodec: numberCodec, Description: "state .oneNumber\nupdate .oneNumber\nmessage oneNumber\n1 n int64\n",
}

var numberCodec = fsm.Codec[oneNumber]{
	Append:  func(b []byte, v *oneNumber) ([]byte, error) { return append(b, v.n), nil },
	Consume: func(b []byte, v *oneNumber) error { v.n = b[0]; return nil },
}

var discard = slog.New(slog.DiscardHandler)

// startedMachine starts a state machine, and ends it with the test.
func startedMachine(t *testing.T, c Config, d fsm.Definition[oneNumber, oneNumber, struct{}]) *Machine[oneNumber, oneNumber, struct{}] {
	t.Helper()
	m, err := New(c, d)
	if err == nil {
		err = m.Start(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// startedNode starts a node, ends it, and returns its configuration.
func startedNode(t *testing.T, c Config) NodeConfig {
	t.Helper()
	c.Logger = discard
	m := startedMachine(t, c, numbers)
	started := m.node.config
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return started
}

// TestSettingsReachTheNode: all settings of the configuration reach the node, including settings
// without which other tests would still pass.
func TestSettingsReachTheNode(t *testing.T) {
	c := startedNode(t, Config{
		Topology: "test", Group: "numbers", Instance: 2, Instances: 4, Node: "n1", Peers: map[string]string{"n1": "127.0.0.1:0", "n2": "127.0.0.1:1"}, Prefer: "n2",
		Dir: memdir.Quick(t), Sync: wal.Always, SnapshotEvery: 77, ChecksumEvery: 33, ElectionTimeout: 800 * time.Millisecond, Heartbeat: 100 * time.Millisecond, Forward: true,
		Join: true, LostLog: "Ask the operator", Now: func() time.Time { return time.Unix(7, 0) }, Logger: discard,
	})
	if c.Prefer != "n2" || c.Spread != 3 || c.Tick != 100*time.Millisecond || c.Topology != "test" || c.GroupName != "numbers/2-of-4" || c.ChecksumEvery != 33 {
		t.Errorf("the node prefers %q, spreads as %d, ticks each %v, is of %q, %q, and its checksums are %d entries apart",
			c.Prefer, c.Spread, c.Tick, c.Topology, c.GroupName, c.ChecksumEvery)
	}
	if c.Logger != discard {
		t.Error("the node has another logger")
	}
	if o := c.Core; o.Name != "n1" || len(o.Peers) != 2 || o.LeaseTime != 300*time.Millisecond || o.SnapshotEvery != 77 || o.ElectionTicks != 8 || !o.Forward ||
		!strings.HasPrefix(o.Types, numbers.Description) || o.Nonce == 0 || !o.Join || o.LostLog != "Ask the operator" || o.Now() != int64(7*time.Second) {
		t.Errorf("the settings of the core are %+v", o)
	}

	link, err := transport.NewMemory(transport.MemoryOptions{}).Join("n1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	disk, err := OpenFolder(memdir.Quick(t), wal.Options{Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	c = startedNode(t, Config{Topology: "test", Group: "numbers", Node: "n1", Peers: map[string]string{"n1": "n1", "n2": "n2"}, Transport: link, Disk: disk, Logger: discard})
	if c.Transport != link || c.Disk != disk {
		t.Errorf("the node uses the transport %T and the disk %T", c.Transport, c.Disk)
	}
}

// TestSettingsReachTheListener: the settings of the connections reach the transport of the node.
func TestSettingsReachTheListener(t *testing.T) {
	dir := memdir.Quick(t)
	authority, err := certs.NewAuthority("example.org", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(certs.ID{TrustDomain: "example.org", Topology: "test", Node: "n1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	files := grpc.TLS{Cert: filepath.Join(dir, "n1.crt"), Key: filepath.Join(dir, "n1.key"), CA: filepath.Join(dir, "ca.crt")}
	for name, text := range map[string][]byte{files.Cert: pair.Cert, files.Key: pair.Key, files.CA: authority.Cert} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{Topology: "test", Group: "numbers", Node: "n1", Peers: map[string]string{"n1": "127.0.0.1:0"}, Dir: filepath.Join(dir, "log"), Logger: discard}
	secure, insecure := c, c
	secure.TLSCert, secure.TLSKey, secure.TLSCA, secure.TrustDomain = files.Cert, files.Key, files.CA, "example.org"
	insecure.Insecure, insecure.Dir = true, filepath.Join(dir, "other")
	if l := startedMachine(t, secure, numbers).node.listener; l.files != files || l.key.TrustDomain != "example.org" || l.key.Insecure {
		t.Errorf("with TLS the listener has %+v and %+v", l.files, l.key)
	}
	if l := startedMachine(t, insecure, numbers).node.listener; !l.key.Insecure {
		t.Errorf("without TLS the listener has %+v", l.key)
	}
}

// TestCertificateOfTheNode: a group uses the certificate of the section cluster, unless it has one
// of its own. Errors name the file and the variables.
func TestCertificateOfTheNode(t *testing.T) {
	dir := memdir.Quick(t)
	authority, err := certs.NewAuthority("example.org", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(node string) (files certs.Files) {
		pair, err := authority.Issue(certs.ID{TrustDomain: "example.org", Topology: "test", Node: node}, time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for suffix, text := range map[string][]byte{".crt": pair.Cert, ".key": pair.Key, ".ca": authority.Cert} {
			if err := os.WriteFile(filepath.Join(dir, node+suffix), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return certs.Files{Cert: filepath.Join(dir, node+".crt"), Key: filepath.Join(dir, node+".key"), CA: filepath.Join(dir, node+".ca")}
	}
	n1, n2 := issue("n1"), issue("n2")
	for i, test := range []struct {
		what   string
		change func(c *Config)
		files  certs.Files
		want   []string // of the error
	}{
		{"the node's", func(c *Config) { c.NodeTLS, c.NodeTrustDomain = n1, "example.org" }, n1, nil},
		{"the node's, and a trust domain of the group", func(c *Config) { c.NodeTLS, c.NodeTrustDomain, c.TrustDomain = n1, "other.org", "example.org" }, n1, nil},
		{"its own", func(c *Config) {
			c.NodeTLS, c.TLSCert, c.TLSKey, c.TLSCA, c.TrustDomain = n2, n1.Cert, n1.Key, n1.CA, "example.org"
		}, n1, nil},
		{"insecure", func(c *Config) { c.NodeTLS, c.Insecure = n1, true }, certs.Files{}, nil},
		{"the node's, of another node", func(c *Config) { c.NodeTLS, c.NodeTrustDomain = n2, "example.org" }, certs.Files{}, []string{n2.Cert, "/n2", "/n1", nodeTLSNames}},
		{"its own, of another node", func(c *Config) { c.TLSCert, c.TLSKey, c.TLSCA, c.TrustDomain = n2.Cert, n2.Key, n2.CA, "example.org" }, certs.Files{}, []string{n2.Cert, tlsNames}},
		{"the node's, which is missing", func(c *Config) { c.NodeTLS = certs.Files{Cert: "gone.crt", Key: n1.Key, CA: n1.CA} }, certs.Files{}, []string{"gone.crt", nodeTLSNames}},
		{"the node's, in parts", func(c *Config) { c.NodeTLS.Cert = n1.Cert }, certs.Files{}, []string{VariableNodeKey + " (cluster.tls.key), " + VariableNodeCA + " (cluster.tls.ca)"}},
		{"none", func(c *Config) { c.Peers["n1"] = "0.0.0.0:0" }, certs.Files{}, []string{nodeTLSNames, insecureName}},
	} {
		c := Config{Topology: "test", Group: "numbers", Node: "n1", Peers: map[string]string{"n1": "127.0.0.1:0"}, Dir: filepath.Join(dir, strconv.Itoa(i)), Logger: discard}
		test.change(&c)
		if test.want == nil {
			if l := startedMachine(t, c, numbers).node.listener; l.files != test.files || test.files != (certs.Files{}) && l.key.TrustDomain != "example.org" {
				t.Errorf("%s: the listener has %+v and the trust domain %q", test.what, l.files, l.key.TrustDomain)
			}
			continue
		}
		m, err := New(c, numbers)
		if err == nil {
			err = m.Start(t.Context(), nil)
		}
		for _, text := range test.want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error is %v, want one with %s", test.what, err, text)
			}
		}
	}
}

// TestChecksumsAreOff: a program with other updates than the one that wrote the log does not start,
// unless it compares no checksums.
func TestChecksumsAreOff(t *testing.T) {
	c := Config{Topology: "test", Group: "numbers", Dir: memdir.Quick(t), ChecksumEvery: 16, Logger: discard}
	m := startedMachine(t, c, numbers)
	for range 40 {
		if _, err := m.Propose(t.Context(), oneNumber{1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	other := numbers
	other.Update = fsm.NoResult(func(u *oneNumber, s *oneNumber) error { s.n += 2 * u.n; return nil })
	for _, c.NoChecksums = range []bool{false, true} {
		m, err := New(c, other)
		if err != nil {
			t.Fatal(err)
		}
		if err = m.Start(t.Context(), nil); err == nil {
			_, err = m.Propose(t.Context(), oneNumber{1})
		}
		_ = m.Close()
		if errors.Is(err, fsm.ErrStateDiffers) == c.NoChecksums {
			t.Errorf("without checksums: %t; got %v", c.NoChecksums, err)
		}
	}
}

// appliedUpdates is a listener that keeps the updates.
type appliedUpdates struct{ updates [][]byte }

func (a *appliedUpdates) Applied(_ fsm.Entry, _ uint64, update []byte, _ string) {
	a.updates = append(a.updates, slices.Clone(update))
}
func (*appliedUpdates) Restored(uint64) {}

// TestListenerOfAConfig: the listener observes each update.
func TestListenerOfAConfig(t *testing.T) {
	var applied appliedUpdates
	m := startedMachine(t, Config{Topology: "test", Group: "numbers", Dir: memdir.Quick(t), Listener: &applied, Logger: discard}, numbers)
	if _, err := m.Propose(t.Context(), oneNumber{7}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if len(applied.updates) != 1 || !slices.Equal(applied.updates[0], []byte{7}) {
		t.Errorf("the listener has %v", applied.updates)
	}
}
