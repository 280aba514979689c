package durabletests_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/nodejs"
	"github.com/topogen/topogen/internal/test/rerun"
)

// A certificate of a server at 127.0.0.1, which is its own authority.
type certificate struct {
	certificate, key string // files
	client           *http.Client
}

// newCertificate writes the certificate of package httptest to files.
func newCertificate(t *testing.T) *certificate {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	c := &certificate{client: server.Client()}
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	c.certificate = write("server.crt", "CERTIFICATE", server.Certificate().Raw)
	c.key = write("server.key", "PRIVATE KEY", key)
	return c
}

// TestDurableSDKTLS runs a worker and its caller with a server that has a certificate and a token.
func TestDurableSDKTLS(t *testing.T) {
	t.Parallel()
	b := &bench{T: t, tools: nodejs.Need(t, sdkPrograms), store: filepath.Join(t.TempDir(), "store"), token: "open-sesame", tls: newCertificate(t)}
	b.flags = []string{"--tls-cert", b.tls.certificate, "--tls-key", b.tls.key}
	rerun.WhenCodeChanges(t)
	b.open()
	b.node(nil, "worker.ts")
	b.node(nil, "begin.ts", "accepted", "add", "1", "2").want("began accepted\n")
	if out, err := b.node(nil, "result.ts", "accepted").result(); err != nil || !strings.HasSuffix(out, "\nresult: 3\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := b.node([]string{"NODE_EXTRA_CA_CERTS="}, "result.ts", "accepted").result(); err == nil {
		t.Errorf("a program that does not know the authority gets a result: %s", out)
	}
}
