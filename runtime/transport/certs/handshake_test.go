package certs

import (
	"bytes"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// goneConn is a connection that says when it is closed.
type goneConn struct {
	net.Conn
	gone chan struct{}
}

func (c goneConn) Gone() <-chan struct{} { return c.gone }

// arrival is a handshake that is reading.
type arrival struct {
	*Handshake
	other net.Conn
	gone  chan struct{}
	read  chan error
}

func arrive(turns *Turns) *arrival {
	here, there := net.Pipe()
	a := &arrival{other: there, gone: make(chan struct{}), read: make(chan error, 8)}
	a.Handshake = turns.Handshake(goneConn{here, a.gone})
	return a
}

// next begins to read, after n bytes have arrived, and reports whether the handshake has its turn.
func (a *arrival) next(n int) bool {
	go func() {
		_, err := io.ReadFull(a, make([]byte, n))
		a.read <- err
	}()
	go a.other.Write(make([]byte, n))
	synctest.Wait()
	return a.turn.Load() != turnNone
}

// TestTurns: one handshake at a time works on what has arrived. The others wait, but not forever,
// and not if their connection is closed.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		first, second, third, closed := arrive(turns), arrive(turns), arrive(turns), arrive(turns)
		if !first.next(1) {
			t.Fatal("the first handshake has no turn")
		}
		if second.next(1) || closed.next(1) {
			t.Fatal("two handshakes have a turn")
		}
		close(closed.gone)
		if err := <-closed.read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a handshake whose connection is closed: %v", err)
		}
		go first.Read(make([]byte, 1)) // waits for its other end
		if err := <-second.read; err != nil {
			t.Errorf("after the first handshake has worked: %v", err)
		}
		began := time.Now()
		third.next(1)
		if err := <-third.read; err == nil || !strings.Contains(err.Error(), "too many handshakes") || time.Since(began) != turnWait {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for name, end := range map[string]func(*arrival){
			"End": func(a *arrival) { a.End() }, "Close": func(a *arrival) { a.Close() }, "Write": func(a *arrival) { go a.Write([]byte{1}) },
		} {
			end(second)
			synctest.Wait()
			if len(turns.one) != 0 {
				t.Errorf("a handshake has kept its turn after %s", name)
			}
			second.other.Close()
			if second = arrive(turns); !second.next(1) {
				t.Errorf("no turn after %s", name)
			}
		}
		second.Close()
		for _, a := range []*arrival{first, third, closed, second} {
			a.other.Close()
		}
	})
}

// TestLargeHandshakes: a small handshake overtakes the large ones that wait.
func TestLargeHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns()
		large := []*arrival{arrive(turns), arrive(turns), arrive(turns)}
		for _, a := range large {
			a.next(handshakeSmall)
			a.End()
		}
		for i, a := range large {
			if a.next(1) != (i == 0) {
				t.Error("not one large handshake has its turn, but", i)
			}
		}
		small := arrive(turns)
		if small.next(1) {
			t.Error("two handshakes have a turn")
		}
		large[0].End()
		synctest.Wait()
		if small.turn.Load() != turnOne {
			t.Error("a small handshake has waited for more than one large one")
		}
		for range 3 {
			for _, a := range append(large, small) {
				a.End()
				synctest.Wait()
			}
		}
		if len(turns.one)+len(turns.large) != 0 {
			t.Error("a handshake has kept its turn")
		}
		for _, a := range append(large, small) {
			a.other.Close()
		}
	})
}

// TestListener: a listener verifies clients as before, refuses chains beyond the limits, and ends
// its limits when the client is known.
func TestListener(t *testing.T) {
	root := (*issuer)(nil).authority(t, "root")
	pair := func(i *issuer, more ...*issuer) *tls.Certificate {
		key := newKey(t, elliptic.P256())
		c := &tls.Certificate{PrivateKey: key, Certificate: [][]byte{i.sign(t, "leaf", false, key.Public(), nil).cert.Raw}}
		for _, m := range more {
			c.Certificate = append(c.Certificate, m.cert.Raw)
		}
		return c
	}
	stranger := (*issuer)(nil).authority(t, "root")
	names := pair(stranger)
	names.Certificate = [][]byte{stranger.many(t, 100_000)}
	fits := pair(stranger)
	fits.Certificate = [][]byte{stranger.many(t, 10_000)}
	required := map[tls.ClientAuthType]string{tls.RequireAndVerifyClientCert: "didn't provide a certificate"}
	long := []*issuer{root, root, root, root, root}
	for _, auth := range []tls.ClientAuthType{tls.RequireAndVerifyClientCert, tls.VerifyClientCertIfGiven, tls.NoClientCert} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			config := &tls.Config{Certificates: []tls.Certificate{*pair(root)}, ClientCAs: root.pool(), ClientAuth: auth, MaxVersion: version}
			other := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return config, nil }}
			for _, c := range []struct {
				name string
				cert *tls.Certificate
				want string
			}{
				{"a client", pair(root), ""},
				{"six certificates", pair(root, long...), "at most 5 certificates"},
				{"a stranger", pair(stranger), "unknown authority"},
				{"a stranger with 10,000 names", fits, "unknown authority"},
				{"a stranger with 100,000 names", names, "at most 32768 bytes"},
				{"no certificate", new(tls.Certificate), required[auth]},
			} {
				if auth == tls.NoClientCert {
					c.want = "" // clients are not asked for certificates
				}
				for how, config := range map[string]*tls.Config{"": config, ", with another configuration for each client": other} {
					turns := NewTurns()
					err := exchange(t, turns, config, c.cert)
					if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
						t.Errorf("%s, %v, version %x%s: %v, want %q", c.name, auth, version, how, err, c.want)
					}
					if len(turns.one)+len(turns.large) != 0 {
						t.Errorf("%s, %v, version %x%s: the handshake has kept its turn", c.name, auth, version, how)
					}
				}
			}
		}
	}
}

// exchange connects a client to a listener, and sends more than a handshake may have.
func exchange(t *testing.T, turns *Turns, config *tls.Config, cert *tls.Certificate) error {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := turns.Listener(socket, config)
	defer l.Close()
	data := make([]byte, 3*handshakeBytesMax)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		client, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil },
		})
		if err != nil {
			return
		}
		defer client.Close()
		_, _ = client.Write(data)
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadFull(conn, data)
	conn.Close()
	<-sent
	return err
}

// many is a certificate with empty names, of two bytes each.
func (i *issuer) many(t *testing.T, names int) []byte {
	value, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: bytes.Repeat([]byte{0x86, 0}, names)})
	if err != nil {
		t.Fatal(err)
	}
	key := newKey(t, elliptic.P256())
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}},
	}, i.cert, key.Public(), i.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
