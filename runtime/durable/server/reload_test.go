package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/durable/edges/serve"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// files are those of a certificate, its key and the authorities.
type files struct {
	t   *testing.T
	dir string
}

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

func (f files) write(name, kind string, contents ...[]byte) {
	f.t.Helper()
	var text []byte
	for _, b := range contents {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})...)
	}
	if err := os.WriteFile(f.path(name), text, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// replace writes a certificate, its key and the authority.
func (f files) replace(pair tls.Certificate, of *authority) {
	f.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write("tls.crt", "CERTIFICATE", pair.Certificate...)
	f.write("tls.key", "PRIVATE KEY", key)
	f.write("ca.crt", "CERTIFICATE", of.certificate.Raw)
}

func (f files) names() certs.Files {
	return certs.Files{Cert: f.path("tls.crt"), Key: f.path("tls.key"), CA: f.path("ca.crt")}
}

// TestFilesAreReadAgain: a server uses a new certificate and new authorities without a restart.
// Files that do not match change nothing.
func TestFilesAreReadAgain(t *testing.T) {
	f := files{t, t.TempDir()}
	first := newAuthority(t)
	f.replace(first.issue(t, x509.ExtKeyUsageServerAuth), first)
	n := f.names()
	s, err := serve.HTTP(openEngine(t, openConfig), &edges.Config{Listen: "127.0.0.1:0", TLSCert: n.Cert, TLSKey: n.Key, TLSCA: n.CA}, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	accepted := func(a *authority) bool {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageClientAuth)}}}
		defer tr.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.Address()+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := tr.RoundTrip(r)
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	}
	second := newAuthority(t)
	if !accepted(first) || accepted(second) {
		t.Fatal("the server must accept the clients of its authority only")
	}
	f.write("tls.crt", "CERTIFICATE", second.certificate.Raw) // its key is not in the file
	if !accepted(first) {
		t.Error("with a certificate that does not match the key, the server does not use the previous files")
	}
	f.replace(second.issue(t, x509.ExtKeyUsageServerAuth), second)
	if accepted(first) || !accepted(second) {
		t.Error("the server must use the new files only")
	}
}
