package grpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// certificates are the credential of this end, which is read again when its files change.
type certificates = certs.Reloader[*credential]

// credential is the result of reading the files once.
type credential struct {
	files   TLS
	pair    tls.Certificate
	roots   *x509.CertPool
	id      certs.ID
	expires time.Time
}

// loadCertificates reads the files for the first time. If want is not zero, the certificate must
// be for this subject.
func loadCertificates(files TLS, want certs.ID, logger *slog.Logger) (*certificates, error) {
	if files.Cert == "" || files.Key == "" || files.CA == "" { // without CA, all authorities of the system would be trusted
		return nil, errors.New("TLS needs three files: a certificate, its key and the authorities")
	}
	return certs.Load(files, logger, func(c *certs.Credential) (own *credential, err error) {
		own = &credential{files: files, pair: c.Pair, roots: c.Roots}
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if own.id, own.expires, err = own.verify(c.Chain, usage); err != nil {
				return nil, fmt.Errorf("%s: %w", files.Cert, err)
			}
		}
		if want != (certs.ID{}) && own.id != want {
			return nil, fmt.Errorf("%s is for %s, but this node is %s", files.Cert, own.id, want)
		}
		return own, nil
	})
}

// expiredText returns a text for errors if the certificate in use has expired, and ""
// otherwise.
func (c *credential) expiredText(now time.Time) string {
	if now.Before(c.expires) {
		return ""
	}
	return fmt.Sprintf(", which has expired (%s at %s): replace the certificate and its key, a restart is not needed", c.files.Cert, c.expires.UTC().Format(time.RFC3339))
}

// verify checks a chain of certificates against the authorities, and returns its
// subject and when it expires.
func (c *credential) verify(chain []*x509.Certificate, usage x509.ExtKeyUsage) (id certs.ID, expires time.Time, err error) {
	chains, err := certs.Verify(chain, c.roots, []x509.ExtKeyUsage{usage}, time.Now())
	if err != nil {
		return id, expires, err
	}
	for _, cert := range chains[0] {
		if expires.IsZero() || cert.NotAfter.Before(expires) {
			expires = cert.NotAfter
		}
	}
	if most := time.Now().Add(expiresMax); expires.After(most) {
		expires = most
	}
	id, err = certs.Of(chain[0])
	return id, expires, err
}
