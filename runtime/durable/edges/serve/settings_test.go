package serve

import (
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/edges"
	"github.com/topogen/topogen/runtime/durable/local"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// TestSettingsReachTheServer sets the address, insecure, the token and the files for TLS, and
// observes which clients the server accepts.
func TestSettingsReachTheServer(t *testing.T) {
	backend, err := local.New(core.Config{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	file := files(t)
	client, err := tls.LoadX509KeyPair(file("client"))
	if err != nil {
		t.Fatal(err)
	}
	cert, key := file("server")
	ca, _ := file("ca")
	other, _ := files(t)("ca")
	secret := http.Header{"Authorization": {"Bearer secret"}}
	for name, c := range map[string]struct {
		config  edges.Config
		token   string
		header  http.Header
		client  []tls.Certificate
		refused bool // to listen
		status  int  // 0: the connection fails
	}{
		"loopback":        {config: edges.Config{Listen: "127.0.0.1:0"}, status: http.StatusOK},
		"network":         {config: edges.Config{Listen: "0.0.0.0:0"}, refused: true},
		"insecure":        {config: edges.Config{Listen: "0.0.0.0:0", Insecure: true}, status: http.StatusOK},
		"token":           {config: edges.Config{Listen: "0.0.0.0:0"}, token: "secret", header: secret, status: http.StatusOK},
		"no token":        {config: edges.Config{Listen: "0.0.0.0:0"}, token: "secret", status: http.StatusUnauthorized},
		"certificate":     {config: edges.Config{Listen: "0.0.0.0:0", TLSCert: cert, TLSKey: key, TLSCA: ca}, client: []tls.Certificate{client}, status: http.StatusOK},
		"no certificate":  {config: edges.Config{Listen: "127.0.0.1:0", TLSCert: cert, TLSKey: key, TLSCA: ca}},
		"other authority": {config: edges.Config{Listen: "127.0.0.1:0", TLSCert: cert, TLSKey: key, TLSCA: other}, client: []tls.Certificate{client}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := HTTP(backend, &c.config, c.token, slog.New(slog.DiscardHandler))
			if (err != nil) != c.refused {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			defer s.Close(t.Context())
			url := "http://" + s.Address()
			if c.config.TLSCert != "" {
				url = "https://" + s.Address()
			}
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: c.client}}
			defer transport.CloseIdleConnections()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/health", nil)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(request.Header, c.header)
			got := 0
			if r, err := transport.RoundTrip(request); err == nil {
				r.Body.Close()
				got = r.StatusCode
			}
			if got != c.status {
				t.Errorf("the status is %d, want %d", got, c.status)
			}
		})
	}
}

// files issues certificates of a new authority. The name "ca" is the authority.
func files(t *testing.T) func(name string) (cert, key string) {
	t.Helper()
	dir := memdir.Quick(t)
	authority, err := certs.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) (cert, key string) {
		cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
		pair := certs.Pair{Cert: authority.Cert}
		if name != "ca" {
			if pair, err = authority.Issue(certs.ID{TrustDomain: "test", Topology: "shop", Node: name}, time.Now(), time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range map[string][]byte{cert: pair.Cert, key: pair.Key} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return cert, key
	}
}
