package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/client"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/server"
)

// authority issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, a.key = a.sign(t, template)
	return a
}

// sign signs a certificate, by itself if the authority has none yet.
func (a *authority) sign(t testing.TB, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// issue issues a certificate for a server on 127.0.0.1, or for a client.
func (a *authority) issue(t testing.TB, usage x509.ExtKeyUsage) tls.Certificate {
	certificate, key := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// TestTLS uses the server with TLS and a token.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	s := listen(t, server.Config{Tokens: []string{token}, TLS: &tls.Config{Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageServerAuth)}}})
	c := connect(t, s, client.Options{Token: token, TLS: &tls.Config{RootCAs: a.pool()}})
	worker, err := c.Connect("g", "p")
	if err != nil {
		t.Fatal(err)
	}
	do(t, c, 200, targeted("a", "poll://any@g"))
	if m := receive(t, worker); m.Execute == nil || m.Execute.ID != "a" {
		t.Errorf("got %+v", m)
	}
	stranger := connect(t, s, client.Options{Token: token})
	if _, err := stranger.Do(t.Context(), protocol.PromiseGet{ID: "a"}); err == nil {
		t.Error("a client that does not know the authority has accepted the certificate")
	}
	do(t, connect(t, s, client.Options{Token: "wrong", TLS: &tls.Config{RootCAs: a.pool()}}), 401, protocol.PromiseGet{ID: "a"})
}

// TestMutualTLS: only a client with a certificate reaches an endpoint.
func TestMutualTLS(t *testing.T) {
	a := newAuthority(t)
	s := listen(t, server.Config{
		Debug: true, MetricsListen: "127.0.0.1:0",
		TLS: &tls.Config{
			Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageServerAuth)},
			ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: a.pool(),
		},
	})
	known := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageClientAuth)}}}
	strangers := []*http.Transport{
		{TLSClientConfig: &tls.Config{RootCAs: a.pool()}},
		{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{newAuthority(t).issue(t, x509.ExtKeyUsageClientAuth)}}},
		{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageServerAuth)}}},
	}
	defer known.CloseIdleConnections()
	for _, e := range endpoints {
		if got := status(t, s, known, e.method, e.path, e.body, nil); got != e.status {
			t.Errorf("%s %s: got status %d, want %d", e.method, e.path, got, e.status)
		}
		for i, stranger := range strangers {
			url := s.URL() + e.path
			if rest, ok := cutMetrics(e.path); ok {
				url = "https://" + s.MetricsAddress() + rest
			}
			r, err := http.NewRequest(e.method, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if response, err := stranger.RoundTrip(r); err == nil {
				response.Body.Close()
				t.Errorf("%s %s: stranger %d got status %d", e.method, e.path, i, response.StatusCode)
			}
		}
	}
}

// TestAddresses: without tokens and client certificates, a server listens only on this
// computer.
func TestAddresses(t *testing.T) {
	backend := openEngine(t, openConfig)
	a := newAuthority(t)
	certificate := a.issue(t, x509.ExtKeyUsageServerAuth)
	for _, test := range []struct {
		name   string
		config server.Config
		ok     bool
	}{
		{"loopback", server.Config{Listen: "127.0.0.1:0"}, true},
		{"localhost", server.Config{Listen: "localhost:0"}, true},
		{"all addresses", server.Config{Listen: "0.0.0.0:0"}, false},
		{"all addresses of version 6", server.Config{Listen: "[::]:0"}, false},
		{"no host", server.Config{Listen: ":0"}, false},
		{"all addresses, insecure", server.Config{Listen: "0.0.0.0:0", Insecure: true}, true},
		{"all addresses with a token", server.Config{Listen: ":0", Tokens: []string{token}}, true},
		{"all addresses with TLS only", server.Config{Listen: ":0", TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}}, false},
		{"all addresses with certificates that are not verified", server.Config{Listen: ":0", TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert}}, false},
		{"all addresses with mutual TLS", server.Config{Listen: ":0", TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert}}, true},
		{"metrics on all addresses", server.Config{Listen: "127.0.0.1:0", MetricsListen: ":0"}, false},
		{"not an address", server.Config{Listen: "127.0.0.1"}, false},
		{"an empty token", server.Config{Listen: "127.0.0.1:0", Tokens: []string{""}}, false},
		{"a negative limit", server.Config{Listen: "127.0.0.1:0", RequestsMax: -1}, false},
	} {
		test.config.Backend = backend
		s, err := server.Listen(test.config)
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
		if err == nil {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := server.Listen(server.Config{}); err == nil {
		t.Error("a server without a backend has started")
	}
}

// TestLongChain: a client must not send more than five certificates.
func TestLongChain(t *testing.T) {
	a := newAuthority(t)
	s := listen(t, server.Config{TLS: &tls.Config{
		Certificates: []tls.Certificate{a.issue(t, x509.ExtKeyUsageServerAuth)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool(),
	}})
	for extra, accepted := range map[int]bool{4: true, 5: false} {
		certificate := a.issue(t, x509.ExtKeyUsageClientAuth)
		for range extra {
			certificate.Certificate = append(certificate.Certificate, a.certificate.Raw)
		}
		c := connect(t, s, client.Options{TLS: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{certificate}}})
		if _, err := c.Do(t.Context(), protocol.PromiseGet{ID: "a"}); (err == nil) != accepted {
			t.Errorf("a chain of %d certificates: %v", 1+extra, err)
		}
	}
}
