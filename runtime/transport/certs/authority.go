package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

const (
	authorityValidity = 10 * 365 * 24 * time.Hour // long, because nothing renews certificates for development
	clockSkew         = 5 * time.Minute           // a certificate is valid from this long before, for clocks that are behind
)

// Pair is a certificate and its key, in PEM.
type Pair struct {
	Cert, Key []byte
}

// Authority is a certificate authority for development. Its signatures are valid only
// for its trust domain.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes an authority with a new key (ECDSA P-256).
func NewAuthority(trustDomain string, now time.Time) (*Authority, error) {
	if err := CheckTrustDomain(trustDomain); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:                     pkix.Name{CommonName: "development CA of " + trustDomain},
		URIs:                        []*url.URL{{Scheme: "spiffe", Host: trustDomain}},
		NotBefore:                   now.Add(-clockSkew),
		NotAfter:                    now.Add(authorityValidity),
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:                        true,
		MaxPathLenZero:              true,
		BasicConstraintsValid:       true,
		PermittedURIDomains:         []string{trustDomain},
		PermittedDNSDomains:         []string{"invalid"}, // so it cannot sign for any web site
		PermittedDNSDomainsCritical: true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return LoadAuthority(pair, now)
}

// LoadAuthority returns an authority that was made before.
func LoadAuthority(p Pair, now time.Time) (*Authority, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	switch c := pair.Leaf; {
	case !ok || !c.IsCA:
		return nil, errors.New("the certificate is not a CA certificate")
	case now.After(c.NotAfter):
		return nil, fmt.Errorf("it expired at %s", c.NotAfter.UTC().Format(time.RFC3339))
	}
	return &Authority{Pair: p, cert: pair.Leaf, key: key}, nil
}

// Issue makes a key (ECDSA P-256) and a certificate for it, for both ends of a
// connection. The certificate does not remain valid longer than the authority.
func (a *Authority) Issue(id ID, now time.Time, validity time.Duration) (Pair, error) {
	if err := id.Check(); err != nil {
		return Pair{}, err
	}
	if !slices.Contains(a.cert.PermittedURIDomains, id.TrustDomain) {
		return Pair{}, fmt.Errorf("the authority is for trust domain %q, not for %q", a.cert.PermittedURIDomains, id.TrustDomain)
	}
	end := now.Add(validity)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return sign(&x509.Certificate{
		URIs:                  []*url.URL{id.url()},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, a.cert, key, a.key)
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, by crypto.Signer) (Pair, error) {
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}
