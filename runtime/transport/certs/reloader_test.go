package certs

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// issuing writes certificates of an authority to files.
type issuing struct {
	t  *testing.T
	ca *Authority
	Files
}

func newIssuing(t *testing.T) *issuing {
	dir := t.TempDir()
	i := &issuing{t: t, Files: Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}}
	i.authority()
	i.issue(time.Hour)
	return i
}

func (i *issuing) write(name string, b []byte) {
	i.t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		i.t.Fatal(err)
	}
}

// authority makes another authority.
func (i *issuing) authority() {
	i.t.Helper()
	var err error
	if i.ca, err = NewAuthority("example.org", time.Now()); err != nil {
		i.t.Fatal(err)
	}
	i.write(i.CA, i.ca.Cert)
}

func (i *issuing) issue(life time.Duration) {
	i.t.Helper()
	pair, err := i.ca.Issue(ID{TrustDomain: "example.org", Topology: "bank", Node: "n1"}, time.Now(), life)
	if err != nil {
		i.t.Fatal(err)
	}
	i.write(i.Cert, pair.Cert)
	i.write(i.Key, pair.Key)
}

// TestReadingsAreShared: handshakes that begin while the files are read share the next
// reading, so their number does not grow with a flood of connections. That reading begins
// later than they do, so it sees files that were replaced before.
func TestReadingsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIssuing(t)
		r, err := Load(i.Files, slog.New(slog.DiscardHandler), func(c *Credential) (*Credential, error) { return c, nil })
		if err != nil {
			t.Fatal(err)
		}
		readings, goOn := 0, make(chan struct{})
		r.readFile = func(name string) ([]byte, error) {
			if name == i.Cert {
				readings++
				<-goOn
			}
			return ReadFile(name)
		}
		const handshakes = 1000
		first, results := r.current, make(chan *Credential, handshakes)
		begin := func() { go func() { results <- r.Get() }() }
		begin()
		synctest.Wait() // it reads
		for range handshakes - 1 {
			begin()
		}
		synctest.Wait()
		if readings != 1 {
			t.Fatalf("%d readings at the same time, want 1", readings)
		}
		goOn <- struct{}{}
		if got := <-results; got != first {
			t.Error("the files have not changed, but the credential has")
		}
		i.issue(time.Hour)
		goOn <- struct{}{}
		for range handshakes - 1 {
			if got := <-results; got == first {
				t.Fatal("a handshake uses the previous certificate, but the files were replaced before they were read")
			}
		}
		if readings != 2 {
			t.Errorf("%d readings for %d handshakes at the same time, want 2", readings, handshakes)
		}
	})
}

// TestServerAndClient: the configurations of both ends follow their files, also if a listener
// guards the one of the server. A file that is not named is not read.
func TestServerAndClient(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	here, there := newIssuing(t), newIssuing(t)
	server, err := Server(here.Files, tls.VersionTLS13, log)
	if err != nil {
		t.Fatal(err)
	}
	server.NextProtos = []string{"http/1.1"}
	turns, guarded := NewTurns(), guard(server)
	client, err := Client(there.Files, tls.VersionTLS13, log)
	if err != nil {
		t.Fatal(err)
	}
	handshake := func() (string, error) {
		a, b := net.Pipe()
		own := turns.Handshake(a)
		defer own.Close()
		config := client().Clone()
		config.ServerName, config.InsecureSkipVerify, config.NextProtos = "n1", true, guarded.NextProtos // the authority signs no host names
		go func() {
			c := tls.Client(b, config)
			_ = c.Handshake()
			_, _ = io.Copy(io.Discard, c)
			_ = b.Close()
		}()
		s := tls.Server(own, guarded)
		err := s.Handshake()
		return s.ConnectionState().NegotiatedProtocol, err
	}
	if _, err := handshake(); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a client of another authority: %v", err)
	}
	there.ca = here.ca
	there.issue(time.Hour)
	if got, err := handshake(); err != nil || got != "http/1.1" {
		t.Errorf("the client has a new certificate: protocol %q and %v", got, err)
	}
	here.authority()
	if _, err := handshake(); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("the server has another authority: %v", err)
	}
	before := client()
	if client() != before {
		t.Error("the files have not changed, but the configuration has")
	}
	there.issue(-time.Minute)
	if client() != before {
		t.Error("a certificate that has expired is used")
	}
	if _, err := Server(there.Files, tls.VersionTLS13, log); err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("a server whose certificate has expired: %v", err)
	}
	plain, err := Client(Files{}, tls.VersionTLS12, log)
	if err != nil || plain().RootCAs != nil || plain().Certificates != nil {
		t.Errorf("without files: %v", err)
	}
	if s, err := Server(Files{Cert: here.Cert, Key: here.Key}, tls.VersionTLS12, log); err != nil || s.ClientAuth != tls.NoClientCert || s.ClientCAs != nil {
		t.Errorf("without authorities, clients need no certificate: %v", err)
	}
}
