package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Files names files in PEM format. The name of a file that is not needed is empty.
type Files struct {
	Cert string // the certificate of this end and the intermediate certificates
	Key  string // its key
	CA   string // the trusted authorities
}

// Credential is the content of Files.
type Credential struct {
	Pair    tls.Certificate     // zero without Cert
	Chain   []*x509.Certificate // of Pair
	Roots   *x509.CertPool      // nil without CA
	Expires time.Time           // when the first certificate of Chain expires; zero without Cert
}

// A Reloader reads files again when they change. It compares their contents, because times
// and sizes miss a change that comes shortly after another one.
type Reloader[T any] struct {
	Changed func() // is called when Get returns a new value from then on; nil: no call. Set it before the first Get

	files    Files
	parse    func(*Credential) (T, error)
	logger   *slog.Logger
	readFile func(name string) ([]byte, error)

	mu   sync.Mutex
	next *reading[T] // the reading that has not begun; nil: no call waits for one

	turn          chan struct{}     // holds a value while a reading runs, which owns the fields below
	lastDigest    [sha256.Size]byte // of the files that were read last, valid or not
	current       T
	currentDigest [sha256.Size]byte
}

// reading is one reading of the files. Several calls of Get share it.
type reading[T any] struct {
	done   chan struct{}
	result T // valid after done
}

// Load reads the files for the first time. The function parse makes the value that Get returns. Its
// error means that the files are not valid.
func Load[T any](files Files, logger *slog.Logger, parse func(*Credential) (T, error)) (*Reloader[T], error) {
	r := &Reloader[T]{files: files, parse: parse, logger: logger, readFile: ReadFile, turn: make(chan struct{}, 1)}
	parts, err := r.read()
	if err != nil {
		return nil, err
	}
	if r.current, _, err = r.value(parts); err != nil {
		return nil, err
	}
	r.currentDigest = digest(parts)
	r.lastDigest = r.currentDigest
	return r, nil
}

// Get returns the value of the current files. If the files have changed and do not match each
// other, for example while they are being replaced, it returns the previous value.
//
// The reading begins after the call. All calls that come while another reading runs share
// the next one. Otherwise a flood of connections, which costs its sender less than a
// reading costs this process, would make a queue of handshakes that grows without limit, and
// in which handshakes of peers wait too.
func (r *Reloader[T]) Get() T {
	r.mu.Lock()
	n := r.next
	if n != nil {
		r.mu.Unlock()
		<-n.done
		return n.result
	}
	n = &reading[T]{done: make(chan struct{})}
	r.next = n
	r.mu.Unlock()

	r.turn <- struct{}{}
	r.mu.Lock()
	r.next = nil // later calls need a reading that begins later
	r.mu.Unlock()
	r.refresh()
	n.result = r.current
	<-r.turn
	close(n.done)
	return n.result
}

// refresh reads the files. Only one call may run at a time.
func (r *Reloader[T]) refresh() {
	parts, err := r.read()
	seen := digest(parts)
	if err != nil {
		seen = sha256.Sum256([]byte(err.Error()))
	}
	if seen == r.lastDigest {
		return
	}
	r.lastDigest = seen
	if seen == r.currentDigest { // the same as before the invalid files
		return
	}
	var fresh T
	var expires time.Time
	if err == nil {
		fresh, expires, err = r.value(parts)
	}
	if err != nil {
		r.logger.Warn("transport: the certificate files are not valid; the previous certificates remain in use", "error", err)
		return
	}
	r.current, r.currentDigest = fresh, seen
	r.logger.Info("transport: certificates reloaded", "certificate", r.files.Cert, "expires", expires)
	if r.Changed != nil {
		r.Changed()
	}
}

// read reads the certificate, the key and the authorities.
func (r *Reloader[T]) read() (parts [3][]byte, err error) {
	for i, name := range []string{r.files.Cert, r.files.Key, r.files.CA} {
		if name == "" {
			continue
		}
		if parts[i], err = r.readFile(name); err != nil {
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

// value checks that the files match each other, and makes the value.
func (r *Reloader[T]) value(parts [3][]byte) (value T, expires time.Time, err error) {
	c := new(Credential)
	if r.files.Cert != "" {
		if c.Pair, err = tls.X509KeyPair(parts[0], parts[1]); err != nil {
			return value, expires, fmt.Errorf("%s and %s: %w", r.files.Cert, r.files.Key, err)
		}
		if c.Chain, err = x509.ParseCertificates(bytes.Join(c.Pair.Certificate, nil)); err != nil {
			return value, expires, fmt.Errorf("%s: %w", r.files.Cert, err)
		}
		c.Expires = expiryOf(c.Chain)
	}
	if r.files.CA != "" {
		c.Roots = x509.NewCertPool()
		if !c.Roots.AppendCertsFromPEM(parts[2]) {
			return value, expires, fmt.Errorf("%s holds no certificate", r.files.CA)
		}
	}
	value, err = r.parse(c)
	return value, c.Expires, err
}

func expiryOf(chain []*x509.Certificate) (expires time.Time) {
	for _, c := range chain {
		if expires.IsZero() || c.NotAfter.Before(expires) {
			expires = c.NotAfter
		}
	}
	return expires
}

// Server returns the configuration of a server that reads the files again for each handshake.
// With authorities, clients need certificates.
func Server(files Files, version uint16, logger *slog.Logger) (*tls.Config, error) {
	r, err := Load(files, logger, func(c *Credential) (*tls.Config, error) {
		config := &tls.Config{MinVersion: version, Certificates: []tls.Certificate{c.Pair}}
		if c.Roots != nil {
			config.ClientCAs, config.ClientAuth = c.Roots, tls.RequireAndVerifyClientCert
		}
		return config, c.check(files)
	})
	if err != nil {
		return nil, err
	}
	config := r.Get().Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.Get(), nil }
	return config, nil
}

// Client returns a function that returns the configuration of a client. The function reads the
// files, and returns another configuration after they have changed. Without authorities, those of the
// system are trusted.
func Client(files Files, version uint16, logger *slog.Logger) (func() *tls.Config, error) {
	r, err := Load(files, logger, func(c *Credential) (*tls.Config, error) {
		config := &tls.Config{MinVersion: version, RootCAs: c.Roots}
		if files.Cert != "" {
			config.Certificates = []tls.Certificate{c.Pair}
		}
		return config, c.check(files)
	})
	if err != nil {
		return nil, err
	}
	return r.Get, nil
}

// check returns an error for a certificate that has expired.
func (c *Credential) check(files Files) error {
	if !c.Expires.IsZero() && !time.Now().Before(c.Expires) {
		return fmt.Errorf("%s has expired at %s", files.Cert, c.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}
