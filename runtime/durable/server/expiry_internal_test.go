package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/durable/store"
)

// certificate returns a certificate that signs itself and that is valid for some time.
func certificate(t *testing.T, valid time.Duration) (tls.Certificate, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(valid), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, parsed
}

// waiting is a backend whose operations end with their context.
type waiting struct{ protocol.Backend }

func (waiting) Do(ctx context.Context, _ protocol.Operation) (protocol.Result, error) {
	<-ctx.Done()
	return protocol.Result{}, ctx.Err()
}

// TestConnectionsEndWithCertificates: whatever the connection of a client with a certificate does,
// it ends with the certificate.
func TestConnectionsEndWithCertificates(t *testing.T) {
	const body = `{"kind":"promise.get","head":{"corrId":"1","version":"2026-04-01"},"data":{"id":"a"}}`
	for name, request := range map[string]string{
		"stream":    "GET /poll/g/PID HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"idle":      "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"operation": fmt.Sprintf("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"many":      strings.Repeat("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 10),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := engine.Open(engine.Config{Store: store.NewMemory()})
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close(context.Background())
				server, _ := certificate(t, 24*time.Hour)
				short, one := certificate(t, time.Minute)
				long, other := certificate(t, 90*time.Second)
				authorities := x509.NewCertPool()
				authorities.AddCert(one)
				authorities.AddCert(other)
				config, err := Config{
					Backend: waiting{e}, TLS: &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities},
				}.withDefaults()
				if err != nil {
					t.Fatal(err)
				}
				requests := newPipes()
				s := start(config, requests, nil)
				begin := time.Now()
				ends := make(chan time.Duration, 2)
				for pid, c := range map[string]tls.Certificate{"short": short, "long": long} {
					conn := tls.Client(requests.dial(same), &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{c}})
					conn.SetDeadline(begin.Add(time.Hour)) // so that the test ends
					go func() {
						go io.WriteString(conn, strings.Replace(request, "PID", pid, 1))
						io.Copy(io.Discard, conn)
						ends <- time.Since(begin)
						conn.Close()
					}()
				}
				if first, second := <-ends, <-ends; first != time.Minute || second != 90*time.Second {
					t.Errorf("the connections end after %v and %v, want 1m and 1m30s", first, second)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLateRequest: a request that arrives after the certificate of its client has expired is not
// carried out, also if it is the first one of its connection.
func TestLateRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := certificate(t, time.Hour)
		short, authority := certificate(t, 2*time.Second)
		authorities := x509.NewCertPool()
		authorities.AddCert(authority)
		operations := &counting{}
		config, err := Config{
			Backend: operations, TLS: &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities},
		}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		requests := newPipes()
		s := start(config, requests, nil)
		conn := tls.Client(requests.dial(same), &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{short}})
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		const body = `{"kind":"promise.get","head":{"corrId":"1","version":"2026-04-01"},"data":{"id":"a"}}`
		go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		answer, _ := io.ReadAll(conn)
		if operations.n.Load() != 0 || strings.Contains(string(answer), " 200 ") {
			t.Errorf("%d operations were carried out after the certificate has expired: %s", operations.n.Load(), answer)
		}
		conn.Close()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// counting is a backend that counts operations.
type counting struct {
	protocol.Backend
	n atomic.Int64
}

func (c *counting) Do(context.Context, protocol.Operation) (protocol.Result, error) {
	c.n.Add(1)
	return protocol.Result{Status: protocol.NotFound}, nil
}

// TestEndOfCertificates: the certificates of a client end with the first of them.
func TestEndOfCertificates(t *testing.T) {
	chain := func(minutes ...int) (certificates []*x509.Certificate) {
		for _, m := range minutes {
			certificates = append(certificates, &x509.Certificate{NotAfter: time.Unix(0, 0).Add(time.Duration(m) * time.Minute)})
		}
		return certificates
	}
	for _, test := range []struct {
		chain []*x509.Certificate
		want  int
	}{
		{chain(5), 5},
		{chain(5, 3, 9), 3},
	} {
		end := endOf(&tls.ConnectionState{PeerCertificates: test.chain})
		if want := chain(test.want)[0].NotAfter; !end.Equal(want) {
			t.Errorf("got %v, want %v", end, want)
		}
	}
	if end := endOf(&tls.ConnectionState{}); !end.IsZero() {
		t.Errorf("without a certificate: got %v", end)
	}
}
