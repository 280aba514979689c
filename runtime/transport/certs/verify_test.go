package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// issuer is an authority of a test.
type issuer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var serial int64

// sign signs a certificate. A nil issuer signs itself.
func (i *issuer) sign(t testing.TB, name string, authority bool, public any, key crypto.Signer) *issuer {
	t.Helper()
	serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if authority {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
	}
	parent, by := template, key
	if i != nil {
		parent, by = i.cert, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{cert, key}
}

// authority is another authority with a key of its own.
func (i *issuer) authority(t testing.TB, name string) *issuer {
	key := newKey(t, elliptic.P256())
	return i.sign(t, name, true, key.Public(), key)
}

func (i *issuer) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.cert)
	return pool
}

// rsaKey is a public key with the given number of bits. It has no private key.
func rsaKey(t testing.TB, bits uint) *rsa.PublicKey {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), bits-1))
	if err != nil {
		t.Fatal(err)
	}
	return &rsa.PublicKey{N: n.SetBit(n.SetBit(n, 0, 1), int(bits)-1, 1), E: 65537}
}

var clients = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}

// TestVerify: Verify accepts what x509 accepts, with limits.
func TestVerify(t *testing.T) {
	root := (*issuer)(nil).authority(t, "root")
	leaf := func(i *issuer, public any) *issuer { return i.sign(t, "leaf", false, public, nil) }
	good := newKey(t, elliptic.P256()).Public()
	chain := []*issuer{root}
	for n := range 5 {
		chain = append(chain, chain[n].authority(t, fmt.Sprint("authority ", n)))
	}
	stranger := (*issuer)(nil).authority(t, "root")
	theirs := stranger.authority(t, "authority 0")
	key := newKey(t, elliptic.P256())
	node := root.sign(t, "node", false, key.Public(), key)
	for _, c := range []struct {
		name  string
		chain []*issuer
		want  string // "": accepted
	}{
		{"signed by the root", []*issuer{leaf(root, good)}, ""},
		{"with the root", []*issuer{leaf(root, good), root}, ""},
		{"four authorities", []*issuer{leaf(chain[4], good), chain[4], chain[3], chain[2], chain[1]}, ""},
		{"authorities in another order", []*issuer{leaf(chain[4], good), chain[2], chain[4], chain[1], chain[3]}, ""},
		{"a needless authority", []*issuer{leaf(chain[1], good), theirs, chain[1]}, ""},
		{"4,096 bits", []*issuer{leaf(root, rsaKey(t, 4096))}, ""},
		{"P-521", []*issuer{leaf(root, newKey(t, elliptic.P521()).Public())}, ""},
		{"none", nil, "no certificate"},
		{"six certificates", []*issuer{leaf(chain[5], good), chain[5], chain[4], chain[3], chain[2], chain[1]}, "at most 5 certificates, got 6"},
		{"8,192 bits", []*issuer{leaf(root, rsaKey(t, 8192))}, "at most 4096 bits, got 8192"},
		{"an authority with 4,097 bits", []*issuer{leaf(root, good), root.sign(t, "large", true, rsaKey(t, 4097), nil)}, "at most 4096 bits, got 4097"},
		{"P-224", []*issuer{leaf(root, newKey(t, elliptic.P224()).Public())}, "P-256, P-384 or P-521, got P-224"},
		{"another root", []*issuer{leaf(stranger, good)}, "unknown authority"},
		{"another root and its authority", []*issuer{leaf(theirs, good), theirs, stranger}, "unknown authority"},
		{"a missing authority", []*issuer{leaf(chain[2], good), chain[2]}, "unknown authority"},
		{"signed by a node", []*issuer{leaf(node, good), node}, "unknown authority"},
	} {
		var certs []*x509.Certificate
		for _, i := range c.chain {
			certs = append(certs, i.cert)
		}
		chains, err := Verify(certs, root.pool(), clients, time.Now())
		if c.want == "" && (err != nil || len(chains) == 0 || !chains[0][len(chains[0])-1].Equal(root.cert)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d chains and the error %v, want %q", c.name, len(chains), err, c.want)
		}
	}
	if _, err := Verify([]*x509.Certificate{leaf(root, good).cert}, root.pool(), []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, time.Now()); err == nil {
		t.Error("a certificate for another usage was accepted")
	}
	if _, err := Verify([]*x509.Certificate{leaf(root, good).cert}, root.pool(), clients, time.Now().Add(2*time.Hour)); err == nil {
		t.Error("a certificate that has expired was accepted")
	}
}

// expensive is a chain that costs the most to verify with x509 alone: all other
// certificates may have signed the first one.
func expensive(t testing.TB, certificates int, bits uint) (chain []*x509.Certificate) {
	t.Helper()
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	root := (*issuer)(nil).sign(t, "x", true, signer.Public(), signer)
	for range certificates {
		c := root.sign(t, "x", true, rsaKey(t, bits), nil).cert
		var parts struct {
			TBS       asn1.RawValue
			Algorithm pkix.AlgorithmIdentifier
			Signature asn1.BitString
		}
		if _, err := asn1.Unmarshal(c.Raw, &parts); err != nil {
			t.Fatal(err)
		}
		parts.Signature = asn1.BitString{Bytes: make([]byte, bits/8), BitLength: int(bits)}
		parts.Signature.Bytes[9] = 1
		der, err := asn1.Marshal(parts)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		chain = append(chain, c)
	}
	return chain
}

// BenchmarkRefusal measures what a stranger's chain costs.
func BenchmarkRefusal(b *testing.B) {
	root := (*issuer)(nil).authority(b, "root")
	for _, c := range []struct {
		certificates int
		bits         uint
	}{{100, 8192}, {5, 4096}} {
		chain := expensive(b, c.certificates, c.bits)
		intermediates := x509.NewCertPool()
		for _, c := range chain[1:] {
			intermediates.AddCert(c)
		}
		b.Run(fmt.Sprintf("certificates=%d/bits=%d/x509", c.certificates, c.bits), func(b *testing.B) {
			for b.Loop() {
				if _, err := chain[0].Verify(x509.VerifyOptions{Roots: root.pool(), Intermediates: intermediates, KeyUsages: clients}); err == nil {
					b.Fatal("accepted")
				}
			}
		})
		b.Run(fmt.Sprintf("certificates=%d/bits=%d/parse", c.certificates, c.bits), func(b *testing.B) {
			for b.Loop() {
				for _, c := range chain {
					if _, err := x509.ParseCertificate(c.Raw); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(fmt.Sprintf("certificates=%d/bits=%d/Verify", c.certificates, c.bits), func(b *testing.B) {
			for b.Loop() {
				if _, err := Verify(chain, root.pool(), clients, time.Now()); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
