package certs

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	chainMax   = 5    // certificates of the other end: a node, and more intermediate authorities than are usual
	rsaBitsMax = 4096 // of a key: a verification takes four times as long with 8,192 bits
)

// Verify verifies the certificates of the other end of a connection, the one of the other
// end first, and returns a chain to one of the roots. It accepts what [x509.Certificate.Verify]
// accepts, with these limits: at most five certificates; keys of RSA with at most 4,096 bits,
// Ed25519, and ECDSA on P-256, P-384 or P-521.
//
// Verify uses no key before a trusted key has signed it, so a chain that strangers have made
// costs little.
func Verify(chain []*x509.Certificate, roots *x509.CertPool, usages []x509.ExtKeyUsage, now time.Time) ([][]*x509.Certificate, error) {
	if err := checkChain(chain); err != nil {
		return nil, err
	}
	return chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: trusted(chain[1:], roots, now), KeyUsages: usages, CurrentTime: now})
}

// trusted returns the certificates of authorities that a root has signed, directly or
// through other ones. Ends may send them in any order.
func trusted(authorities []*x509.Certificate, roots *x509.CertPool, now time.Time) *x509.CertPool {
	pool := x509.NewCertPool()
	options := x509.VerifyOptions{Roots: roots, Intermediates: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, CurrentTime: now}
	rest := slices.Clone(authorities)
	for found := true; found; {
		found = false
		rest = slices.DeleteFunc(rest, func(c *x509.Certificate) bool {
			if _, err := c.Verify(options); err != nil {
				return false
			}
			pool.AddCert(c)
			found = true
			return true
		})
	}
	return pool
}

// checkChain checks the certificates without cryptography.
func checkChain(chain []*x509.Certificate) error {
	switch {
	case len(chain) == 0:
		return errors.New("no certificate")
	case len(chain) > chainMax:
		return fmt.Errorf("the other end must send at most %d certificates, got %d", chainMax, len(chain))
	}
	for _, c := range chain {
		if err := checkKey(c.PublicKey); err != nil {
			return err
		}
	}
	return nil
}

func checkKey(key any) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits > rsaBitsMax {
			return fmt.Errorf("a key of RSA must have at most %d bits, got %d", rsaBitsMax, bits)
		}
		return nil
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		return fmt.Errorf("a key of ECDSA must be on P-256, P-384 or P-521, got %s", key.Curve.Params().Name)
	case ed25519.PublicKey:
		return nil
	}
	return fmt.Errorf("a key must be of RSA, ECDSA or Ed25519, got %T", key)
}
