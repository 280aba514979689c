package grpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/topogen/topogen/runtime/transport/certs"
)

// identity is the verified identity of the other end of a connection.
type identity struct {
	credentials.TLSInfo
	id      certs.ID
	expires time.Time // when the first certificate of either end expires
}

func (i *identity) hasExpired() bool { return !time.Now().Before(i.expires) }

// mutualTLS is TLS 1.3 with certificates of both ends. It checks that a trusted
// authority has signed them, and that accept returns no error for the other end. The user
// of the connection checks the names within a topology, so that it can tell the other end
// the reason of a refusal.
type mutualTLS struct {
	credentials.TransportCredentials // for the methods that do not depend on the configuration
	certificates                     *certificates
	accept                           func(own, other certs.ID) error
	refused                          func(conn net.Conn, err error)
}

func newMutualTLS(c *certificates, accept func(own, other certs.ID) error, refused func(net.Conn, error)) *mutualTLS {
	return &mutualTLS{
		TransportCredentials: credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}),
		certificates:         c, accept: accept, refused: refused,
	}
}

// config returns the configuration of one handshake. In it crypto/tls calls
// VerifyConnection before it uses the key of the other end.
func (s *mutualTLS) config(own *credential, usage x509.ExtKeyUsage, found *identity) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"h2"},
		Certificates:           []tls.Certificate{own.pair},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // VerifyConnection verifies names that are not host names
		SessionTicketsDisabled: true, // each connection is verified completely
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			found.id, found.expires, err = own.verify(state.PeerCertificates, usage)
			if own.expires.Before(found.expires) {
				found.expires = own.expires
			}
			return err
		},
	}
}

// ClientHandshake waits for the first byte that the listener sends after the handshake. In
// TLS 1.3 only this byte shows the dialler that the listener has accepted its certificate.
// If the dialler wrote data before, a write error could hide the reason of a refusal.
//
// The dialler checks then whether the listener belongs to its topology, so that the listener
// has its certificate, and can log which process it refuses.
func (s *mutualTLS) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	var found identity
	own := s.certificates.Get()
	conn, info, err := credentials.NewTLS(s.config(own, x509.ExtKeyUsageServerAuth, &found)).ClientHandshake(ctx, authority, raw)
	if err != nil {
		s.refused(raw, err)
		return nil, nil, err
	}
	confirmed := &confirmedConn{Conn: conn}
	err = confirmed.confirm()
	if err != nil {
		err = fmt.Errorf("the peer does not accept this node's certificate%s: %w", own.expiredText(time.Now()), err)
	}
	if wrong := s.accept(own.id, found.id); wrong != nil {
		err = wrong
	}
	if err != nil {
		s.refused(raw, err)
		conn.Close()
		return nil, nil, err
	}
	found.TLSInfo = info.(credentials.TLSInfo)
	return found.connection(confirmed), found, nil
}

// confirmedConn is a connection whose first byte was read by confirm.
type confirmedConn struct {
	net.Conn
	first []byte
}

func (b *confirmedConn) confirm() error {
	b.first = make([]byte, 1)
	if err := b.Conn.SetReadDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if _, err := io.ReadFull(b.Conn, b.first); err != nil {
		return err
	}
	return b.Conn.SetReadDeadline(time.Time{})
}

func (b *confirmedConn) Read(p []byte) (n int, err error) {
	if len(b.first) == 0 {
		return b.Conn.Read(p)
	}
	n = copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}

func (s *mutualTLS) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	var found identity
	own := s.certificates.Get()
	config := s.config(own, x509.ExtKeyUsageClientAuth, &found)
	verify := config.VerifyConnection
	handshake := certs.Strangers.Handshake(raw)
	defer handshake.End()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verify(state); err != nil {
			return err
		}
		if err := s.accept(own.id, found.id); err != nil {
			return err
		}
		handshake.Known()
		return nil
	}
	conn, info, err := credentials.NewTLS(config).ServerHandshake(handshake)
	if err != nil {
		s.refused(raw, err)
		return nil, nil, err
	}
	found.TLSInfo = info.(credentials.TLSInfo)
	return found.connection(conn), found, nil
}

// expiringConn is a connection that ends with the identity of its ends. A user that needs
// another one at once then opens it, with the certificates that are in the files.
type expiringConn struct {
	net.Conn
	end *time.Timer
}

// connection returns a connection that is closed shortly after a certificate has expired. The calls
// on it end before, with the reason.
func (i *identity) connection(conn net.Conn) net.Conn {
	return &expiringConn{conn, time.AfterFunc(time.Until(i.expires)+expiredGrace, func() { _ = conn.Close() })}
}

func (c *expiringConn) Close() error {
	c.end.Stop()
	return c.Conn.Close()
}

func (s *mutualTLS) Clone() credentials.TransportCredentials { return s }
