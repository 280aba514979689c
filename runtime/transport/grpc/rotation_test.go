package grpc

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// traffic sends numbers from one node to another until it is stopped, at most a window
// ahead of the arrived ones. It returns how many it has sent.
func traffic(a *Transport, to string, y *tally) (stop func() uint64) {
	var stopped atomic.Bool
	done := make(chan uint64)
	go func() {
		n := uint64(0)
		for !stopped.Load() {
			if n-y.from(a.config.Node) > 1000 {
				<-time.After(50 * time.Microsecond)
				continue
			}
			a.Send(to, number(n))
			n++
		}
		done <- n
	}()
	return func() uint64 {
		stopped.Store(true)
		return <-done
	}
}

// since returns when the last stream of a peer was opened; zero while there is none.
func since(n *Transport, of string) time.Time {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if p := n.peers[of].process; p != nil {
		return p.Since
	}
	return time.Time{}
}

// TestRotationUnderLoad: while messages go in both directions, the certificates of both
// ends and their authority are replaced again and again, and no message is lost.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel() // it waits for new certificates
	p := newPKI(t)
	var logA, logB logged
	ca, cb := p.config(t, "n1"), p.config(t, "n2")
	ca.Logger, cb.Logger = logA.logger(), logB.logger()
	a, b := start(t, ca), start(t, cb)
	ya, yb := newTally(t), newTally(t)
	a.Handle(ledger, ya.receive)
	b.Handle(ledger, yb.receive)
	meet(t, a, b)
	stopA, stopB := traffic(a, "n2", yb), traffic(b, "n1", ya)

	const rounds = 10
	for round := range rounds {
		if round == rounds/2 { // a new authority, which both nodes trust before any certificate uses it
			old := p.ca.Cert
			next, err := certs.NewAuthority("example.org", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			p.ca = next
			p.write("ca.crt", append(append([]byte(nil), old...), next.Cert...))
			a.certificates.Get() // as poll does
			b.certificates.Get()
		}
		at, bt := since(b, "n1"), since(a, "n2")
		p.issue("n1", node("n1"), time.Hour)
		a.certificates.Get()
		p.issue("n2", node("n2"), time.Hour)
		b.certificates.Get()
		await(t, "new streams on both nodes", func() bool { return since(b, "n1").After(at) && since(a, "n2").After(bt) })
		before := ya.from("n2") + yb.from("n1")
		await(t, "more messages", func() bool { return ya.from("n2")+yb.from("n1") > before+1000 })
	}
	sentA, sentB := stopA(), stopB()
	await(t, "all messages", func() bool { return yb.from("n1") == sentA && ya.from("n2") == sentB })
	for _, n := range []*Transport{a, b} {
		if s := n.Stats(); s.Dropped+s.Refused+s.Unclaimed != 0 || s.Sent != s.Peers[0].Sent {
			t.Errorf("%+v", s)
		}
	}
	if n := logA.count("certificates reloaded"); n < rounds {
		t.Errorf("certificates reloaded %d times:\n%s", n, &logA)
	}
	if n := logA.count("ERROR") + logB.count("ERROR"); n > 0 {
		t.Errorf("%s\n%s", &logA, &logB)
	}
	t.Logf("%d messages over %d rotations", sentA+sentB, rounds)
}

// TestBadFilesChangeNothing: with half a file, a key of another certificate, the files
// of another node, or no files, the previous certificate remains in use, and the log
// says so once.
func TestBadFilesChangeNothing(t *testing.T) {
	p := newPKI(t)
	var log logged
	files := p.issue("n1", node("n1"), time.Hour)
	c, err := loadCertificates(*files, node("n1"), log.logger())
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	c.Changed = func() { changed++ }
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	become := func(name string) func() {
		return func() { p.write("n1.crt", read(name+".crt")); p.write("n1.key", read(name+".key")) }
	}
	cert, key, ca := read("n1.crt"), read("n1.key"), read("ca.crt")
	p.issue("other", node("n1"), time.Hour)
	p.issue("n3", node("n3"), time.Hour)
	p.issue("old", node("n1"), -time.Minute)
	first := c.Get()
	for want, change := range map[string]func(){
		"any PEM data in certificate input":               func() { p.write("n1.crt", cert[:len(cert)/2]) },
		"any PEM data in key input":                       func() { p.write("n1.key", nil) },
		"no such file":                                    func() { os.Remove(files.Key) },
		"private key does not match":                      func() { p.write("n1.key", read("other.key")) },
		"is for spiffe://example.org/bank/n3, but this n": become("n3"),
		"certificate has expired":                         become("old"),
		"signed by unknown authority":                     func() { p.write("ca.crt", newPKI(t).ca.Cert) },
		"holds no certificate":                            func() { p.write("ca.crt", []byte("?")) },
		"has more than 1048576 bytes":                     func() { p.write("ca.crt", make([]byte, 1<<20+1)) },
	} {
		change()
		for range 3 {
			if c.Get() != first {
				t.Errorf("%s: the files were accepted", want)
			}
		}
		if n := log.count("WARN", "the previous certificates remain in use", want); n != 1 {
			t.Errorf("%d warnings, want 1 with %q:\n%s", n, want, &log)
		}
		p.write("n1.crt", cert)
		p.write("n1.key", key)
		p.write("ca.crt", ca)
		if c.Get() != first || changed != 0 {
			t.Error("the same files changed the credential, or the streams are renewed without a reason")
		}
	}
	become("other")()
	if c.Get() == first || changed != 1 || log.count("INFO", "certificates reloaded") != 1 {
		t.Errorf("a new certificate: changed was called %d times\n%s", changed, &log)
	}
}

// TestStreamsAreRenewed: a stream is replaced before its certificate expires. Without a
// new certificate, the stream ends at both ends when the old one expires.
func TestStreamsAreRenewed(t *testing.T) {
	speed.Landing(t)
	p := newPKI(t)
	const life = 4 * time.Second
	var here, there logged
	ca, cb := p.config(t, "n1"), p.config(t, "n2")
	cb.TLS = p.issue("n2", node("n2"), life)
	ca.Logger, cb.Logger = here.logger(), there.logger()
	a, b := start(t, ca), start(t, cb)
	ya := newTally(t)
	a.Handle(ledger, ya.receive)
	meet(t, a, b)
	stop := traffic(b, "n1", ya)
	for range 2 { // the files are replaced in time; the nodes notice it
		at, bt := since(b, "n1"), since(a, "n2")
		p.issue("n2", node("n2"), life)
		await(t, "new streams", func() bool { return since(b, "n1").After(at) && since(a, "n2").After(bt) })
	}
	sent := stop()
	await(t, "all messages", func() bool { return ya.from("n2") == sent })
	if s := b.Stats(); s.Dropped != 0 || s.Refused != 0 || there.count("expired") != 0 {
		t.Errorf("%+v\n%s", s, &there)
	}

	// Now the files are not replaced.
	await(t, "the stream to end", func() bool { return !connected(b, a) && there.count("expired") > 0 })
	await(t, "the node to be refused", func() bool {
		b.Send("n1", number(sent))
		return b.Stats().Dropped > 0
	})
	if !strings.Contains(there.String(), "expired") {
		t.Error(&there)
	}
	p.issue("n2", node("n2"), time.Hour)
	await(t, "the node to be connected again", func() bool { return connected(b, a) })
}

// TestExpiredCertificate: a node whose certificate is refused logs that it has expired.
func TestExpiredCertificate(t *testing.T) {
	p := newPKI(t)
	files := p.issue("n1", node("n1"), time.Hour)
	c, err := loadCertificates(*files, node("n1"), logger(t, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Get().expiredText(time.Now()); got != "" {
		t.Errorf("before: %q", got)
	}
	if got, want := c.Get().expiredText(time.Now().Add(2*time.Hour)), ", which has expired ("+files.Cert+" at "; !strings.HasPrefix(got, want) {
		t.Errorf("an hour later: %q, want the prefix %q", got, want)
	}
}
