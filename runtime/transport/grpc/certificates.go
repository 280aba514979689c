package grpc

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// certificates reads the files of a TLS again when they change. It compares their
// contents, because times and sizes miss a change that comes shortly after another one.
type certificates struct {
	files    TLS
	want     certs.ID // the required subject of the certificate
	logger   *slog.Logger
	readFile func(name string) ([]byte, error)

	mu   sync.Mutex
	next *reading // the reading that has not begun; nil: no call waits for one

	turn       chan struct{}     // holds a value while a reading runs, which owns the fields below
	lastDigest [sha256.Size]byte // of the files that were read last, valid or not
	current    *credential
	changed    func() // called when current has changed
}

// reading is one reading of the files. Several calls of get share it.
type reading struct {
	done   chan struct{}
	result *credential // valid after done
}

// credential is the result of reading the files once.
type credential struct {
	pair    tls.Certificate
	roots   *x509.CertPool
	id      certs.ID
	expires time.Time
	digest  [sha256.Size]byte // of the files
}

// loadCertificates reads the files for the first time.
func loadCertificates(files TLS, want certs.ID, logger *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, want: want, logger: logger, readFile: certs.ReadFile, turn: make(chan struct{}, 1), changed: func() {}}
	parts, err := c.read()
	if err != nil {
		return nil, err
	}
	if c.current, err = c.parse(parts); err != nil {
		return nil, err
	}
	c.lastDigest = c.current.digest
	return c, nil
}

// get returns the current credential. If the files have changed and do not match each
// other, for example while they are being replaced, it returns the previous one.
//
// The reading begins after the call. All calls that come while another reading runs share
// the next one. Otherwise a flood of connections, which costs its sender less than a
// reading costs this node, would make a queue of handshakes that grows without limit, and
// in which handshakes of peers wait too.
func (c *certificates) get() *credential {
	c.mu.Lock()
	r := c.next
	if r != nil {
		c.mu.Unlock()
		<-r.done
		return r.result
	}
	r = &reading{done: make(chan struct{})}
	c.next = r
	c.mu.Unlock()

	c.turn <- struct{}{}
	c.mu.Lock()
	c.next = nil // later calls need a reading that begins later
	c.mu.Unlock()
	r.result = c.refresh()
	<-c.turn
	close(r.done)
	return r.result
}

// refresh reads the files. Only one call may run at a time.
func (c *certificates) refresh() *credential {
	parts, err := c.read()
	seen := digest(parts)
	if err != nil {
		seen = sha256.Sum256([]byte(err.Error()))
	}
	if seen == c.lastDigest {
		return c.current
	}
	c.lastDigest = seen
	if seen == c.current.digest { // the same as before the invalid files
		return c.current
	}
	var fresh *credential
	if err == nil {
		fresh, err = c.parse(parts)
	}
	if err != nil {
		c.logger.Warn("transport: the certificate files are not valid; the previous certificates remain in use", "error", err)
		return c.current
	}
	c.current = fresh
	c.logger.Info("transport: certificates reloaded", "certificate", c.files.Cert, "expires", fresh.expires)
	c.changed()
	return fresh
}

// expiredText returns a text for errors if the certificate in use has expired, and ""
// otherwise.
func (c *certificates) expiredText(now time.Time) string {
	own := c.get()
	if now.Before(own.expires) {
		return ""
	}
	return fmt.Sprintf(", which has expired (%s at %s): replace the certificate and its key, a restart is not needed", c.files.Cert, own.expires.UTC().Format(time.RFC3339))
}

// read reads the certificate, the key and the authorities.
func (c *certificates) read() (parts [3][]byte, err error) {
	for i, name := range []string{c.files.Cert, c.files.Key, c.files.CA} {
		if parts[i], err = c.readFile(name); err != nil {
			return parts, err
		}
	}
	return parts, nil
}

func digest(parts [3][]byte) [sha256.Size]byte {
	var all bytes.Buffer
	for _, p := range parts {
		sum := sha256.Sum256(p)
		all.Write(sum[:])
	}
	return sha256.Sum256(all.Bytes())
}

// parse checks that the files match each other and belong to this node.
func (c *certificates) parse(parts [3][]byte) (*credential, error) {
	pair, err := tls.X509KeyPair(parts[0], parts[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", c.files.Cert, c.files.Key, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(parts[2]) {
		return nil, fmt.Errorf("%s holds no certificate", c.files.CA)
	}
	fresh := &credential{pair: pair, roots: roots, digest: digest(parts)}
	chain, err := x509.ParseCertificates(bytes.Join(pair.Certificate, nil))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.files.Cert, err)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if fresh.id, fresh.expires, err = fresh.verify(certs.Verify, chain, usage); err != nil {
			return nil, fmt.Errorf("%s: %w", c.files.Cert, err)
		}
	}
	if c.want != (certs.ID{}) && fresh.id != c.want {
		return nil, fmt.Errorf("%s is for %s, but this node is %s", c.files.Cert, fresh.id, c.want)
	}
	return fresh, nil
}

// verifier is certs.Verify, or the same with turns.
type verifier = func(chain []*x509.Certificate, roots *x509.CertPool, usages []x509.ExtKeyUsage, now time.Time) ([][]*x509.Certificate, error)

// verify checks a chain of certificates against the authorities, and returns its
// subject and when it expires.
func (c *credential) verify(by verifier, chain []*x509.Certificate, usage x509.ExtKeyUsage) (id certs.ID, expires time.Time, err error) {
	chains, err := by(chain, c.roots, []x509.ExtKeyUsage{usage}, time.Now())
	if err != nil {
		return id, expires, err
	}
	for _, cert := range chains[0] {
		if expires.IsZero() || cert.NotAfter.Before(expires) {
			expires = cert.NotAfter
		}
	}
	id, err = certs.Of(chain[0])
	return id, expires, err
}
