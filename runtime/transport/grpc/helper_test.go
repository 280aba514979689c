package grpc

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/certs"
)

var ledger = transport.GroupID("bank", "ledger")

// await waits for a condition.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !condition(); {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting for %s", what)
		}
		runtime.Gosched()
		<-time.After(time.Millisecond)
	}
}

// logged is a log that a test can read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// count returns how many lines contain all of the texts.
func (l *logged) count(texts ...string) (n int) {
lines:
	for line := range strings.Lines(l.String()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		n++
	}
	return n
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// pki is an authority and a folder with the certificates that it has issued.
type pki struct {
	t   testing.TB
	dir string
	ca  *certs.Authority
}

func newPKI(t testing.TB) *pki {
	ca, err := certs.NewAuthority("example.org", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := &pki{t: t, dir: t.TempDir(), ca: ca}
	p.write("ca.crt", ca.Cert)
	return p
}

func (p *pki) write(name string, b []byte) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// issue writes a certificate to a file and returns the paths.
func (p *pki) issue(file string, id certs.ID, life time.Duration) *TLS {
	p.t.Helper()
	pair, err := p.ca.Issue(id, time.Now(), life)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(file+".key", pair.Key)
	p.write(file+".crt", pair.Cert)
	return &TLS{Cert: filepath.Join(p.dir, file+".crt"), Key: filepath.Join(p.dir, file+".key"), CA: filepath.Join(p.dir, "ca.crt")}
}

func node(name string) certs.ID {
	return certs.ID{TrustDomain: "example.org", Topology: "bank", Node: name}
}

// config returns the configuration of a node that listens on a free port.
func (p *pki) config(t testing.TB, name string) Config {
	c := Config{Node: name, Topology: "bank", Version: "1", Address: "127.0.0.1:0", Logger: logger(t, name)}
	if p != nil {
		c.TrustDomain = "example.org"
		c.TLS = p.issue(name, node(name), time.Hour)
	}
	return c
}

func logger(t testing.TB, name string) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", name)
}

// start returns a listening transport, which is closed at the end of the test.
func start(t testing.TB, c Config) *Transport {
	t.Helper()
	n, err := Listen(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// join makes nodes known to each other.
func join(nodes ...*Transport) {
	for _, a := range nodes {
		for _, b := range nodes {
			a.SetPeer(b.config.Node, b.Addr().String())
		}
	}
}

func connected(a, b *Transport) bool {
	for _, p := range a.Stats().Peers {
		if p.Name == b.config.Node {
			return p.Connected
		}
	}
	return false
}

// meet joins nodes and waits until they are connected.
func meet(t testing.TB, nodes ...*Transport) {
	t.Helper()
	join(nodes...)
	for _, a := range nodes {
		for _, b := range nodes {
			if a != b {
				await(t, a.config.Node+" reaches "+b.config.Node, func() bool { return connected(a, b) })
			}
		}
	}
}

// both runs a test with and without TLS.
func both(t *testing.T, test func(t *testing.T, p *pki)) {
	t.Run("tls", func(t *testing.T) { test(t, newPKI(t)) })
	t.Run("plain", func(t *testing.T) { test(t, nil) })
}

// tally counts the numbers that arrive, by sender, and checks their order.
type tally struct {
	t    *testing.T
	mu   sync.Mutex
	next map[string]uint64
}

func newTally(t *testing.T) *tally { return &tally{t: t, next: make(map[string]uint64)} }

func (y *tally) receive(from string, payloads [][]byte) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, p := range payloads {
		if got := binary.BigEndian.Uint64(p); got != y.next[from] {
			y.t.Errorf("from %s: %d, want %d", from, got, y.next[from])
			y.next[from] = got // one error for each gap
		}
		y.next[from]++
	}
}

func (y *tally) from(name string) uint64 {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.next[name]
}

func (y *tally) String() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return fmt.Sprint(maps.Collect(maps.All(y.next)))
}

func number(n uint64) transport.Message {
	return transport.Message{Group: ledger, Payload: binary.BigEndian.AppendUint64(nil, n)}
}

// goroutines returns how many goroutines run code of gRPC or of this package, except
// tests.
func goroutines() (n int, stacks string) {
	b := make([]byte, 1<<20)
	b = b[:runtime.Stack(b, true)]
	for stack := range bytes.SplitSeq(b, []byte("\n\n")) {
		own := bytes.Contains(stack, []byte("google.golang.org/grpc")) || bytes.Contains(stack, []byte("runtime/transport/grpc."))
		if own && !bytes.Contains(stack, []byte("testing.tRunner")) {
			n++
			stacks += string(stack) + "\n\n"
		}
	}
	return n, stacks
}

func base64Of(b []byte) string { return base64.RawStdEncoding.EncodeToString(b) }
