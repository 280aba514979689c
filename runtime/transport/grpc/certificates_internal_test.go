package grpc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"testing"
	"time"
)

// TestCertificatesWithoutEnd: a certificate without a defined end (RFC 5280, 4.1.2.5) ends no
// connection, and its streams are not renewed again and again.
func TestCertificatesWithoutEnd(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/bank/n1"}}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	c := &credential{roots: x509.NewCertPool()}
	c.roots.AddCert(cert)
	_, expires, err := c.verify([]*x509.Certificate{cert}, x509.ExtKeyUsageAny)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(expires); left+expiredGrace < 0 || left*2 < 0 {
		t.Errorf("the times of connections are negative: %v and %v", left+expiredGrace, left*2)
	}
}
