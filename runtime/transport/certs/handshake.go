package certs

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

const (
	handshakeBytesMax = 32 << 10        // that the other end sends until it is known: five certificates with keys of 4,096 bits have 10 KiB
	handshakeSmall    = 8 << 10         // most handshakes: certificates of one or two authorities
	handshakeRead     = 4 << 10         // of one read: a message of most handshakes
	turnWait          = 5 * time.Second // for the turn of a handshake, as long as a handshake of nodes may take
)

// Turns lets one handshake at a time work on what a stranger has sent, so that strangers use at
// most one processor, and the memory for the certificates of one of them: crypto/tls parses
// certificates before anyone can check them, and 2 bytes of a name can take 150 bytes of memory.
type Turns struct {
	one   chan struct{} // holds a value while a handshake works
	large chan struct{} // the same for handshakes of many bytes, so that small ones wait for at most two large ones
}

// Strangers are the turns of all listeners of this process.
var Strangers = NewTurns()

// NewTurns returns turns that nobody has taken.
func NewTurns() *Turns { return &Turns{one: make(chan struct{}, 1), large: make(chan struct{}, 1)} }

// A Handshake is a connection of a listener. Until [Handshake.Known], its Read waits for the turn
// of the handshake, which it keeps until its next call. In the meantime the handshake works on
// what was read. A handshake that waits for the other end has no turn.
type Handshake struct {
	net.Conn
	turns *Turns
	gone  <-chan struct{} // closed with the connection; nil: not known
	in    *bufio.Reader   // nil: the other end is known, and all that was read in advance is used
	bytes int             // that were read
	known atomic.Bool
	turn  atomic.Int32 // which turns the handshake has
}

const (
	turnNone = iota
	turnOne
	turnLarge // both
)

// Handshake returns the connection for a handshake. If the connection has a method Gone, its
// channel must be closed when the connection is closed.
func (t *Turns) Handshake(c net.Conn) *Handshake {
	h := &Handshake{Conn: c, turns: t}
	if g, ok := c.(interface{ Gone() <-chan struct{} }); ok {
		h.gone = g.Gone()
	}
	h.in = bufio.NewReaderSize((*limitedRead)(h), handshakeRead)
	return h
}

// NetConn returns the connection itself.
func (h *Handshake) NetConn() net.Conn { return h.Conn }

// Known ends the limits of the connection.
func (h *Handshake) Known() { h.known.Store(true) }

// End ends the turn of the handshake.
func (h *Handshake) End() {
	switch h.turn.Swap(turnNone) {
	case turnLarge:
		<-h.turns.one
		<-h.turns.large
	case turnOne:
		<-h.turns.one
	}
}

func (h *Handshake) Read(b []byte) (int, error) {
	if h.in == nil {
		return h.Conn.Read(b)
	}
	if h.in.Buffered() == 0 {
		h.End()
		if h.known.Load() {
			h.in = nil
			return h.Conn.Read(b)
		}
	}
	return h.in.Read(b[:min(len(b), handshakeRead-1)]) // bufio passes larger reads on
}

func (h *Handshake) Write(b []byte) (int, error) {
	h.End()
	return h.Conn.Write(b)
}

// Close closes the connection.
func (h *Handshake) Close() error {
	h.End()
	return h.Conn.Close()
}

// limitedRead reads for a handshake.
type limitedRead Handshake

func (l *limitedRead) Read(b []byte) (int, error) {
	h := (*Handshake)(l)
	if h.bytes >= handshakeBytesMax {
		return 0, fmt.Errorf("the other end must send at most %d bytes until its certificate was verified", handshakeBytesMax)
	}
	n, err := h.Conn.Read(b[:min(len(b), handshakeBytesMax-h.bytes)])
	if h.bytes += n; n == 0 {
		return 0, err
	}
	if late := h.take(); late != nil {
		return 0, late
	}
	return n, err
}

// take waits for the turn of the handshake.
func (h *Handshake) take() error {
	limit := time.NewTimer(turnWait)
	defer limit.Stop()
	if h.bytes <= handshakeSmall {
		return h.wait(h.turns.one, turnOne, limit)
	}
	if err := h.wait(h.turns.large, turnNone, limit); err != nil {
		return err
	}
	err := h.wait(h.turns.one, turnLarge, limit)
	if err != nil {
		<-h.turns.large
	}
	return err
}

func (h *Handshake) wait(turn chan struct{}, has int32, limit *time.Timer) error {
	select {
	case turn <- struct{}{}:
		h.turn.Store(has)
		return nil
	case <-h.gone:
		return net.ErrClosed
	case <-limit.C:
		return fmt.Errorf("too many handshakes: there was no turn for this one within %v", turnWait)
	}
}

// Listener returns a listener of TLS whose clients have certificates that [Verify] accepts, if the
// configuration requires them. Its connections have no VerifiedChains.
func (t *Turns) Listener(l net.Listener, c *tls.Config) net.Listener {
	return tls.NewListener(&turnsListener{l, t}, guard(c))
}

type turnsListener struct {
	net.Listener
	turns *Turns
}

func (l *turnsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.turns.Handshake(c), nil
}

// guard returns a configuration that verifies the certificates of clients with [Verify], and ends
// the limits of a [Handshake] then.
func guard(c *tls.Config) *tls.Config {
	guarded := c.Clone()
	guarded.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		one := c
		if c.GetConfigForClient != nil {
			other, err := c.GetConfigForClient(hello)
			if err != nil {
				return nil, err
			}
			if other != nil {
				if one = other; one.NextProtos == nil {
					one = other.Clone()
					one.NextProtos = c.NextProtos
				}
			}
		}
		return hello.Conn.(*Handshake).guard(one), nil
	}
	return guarded
}

func (h *Handshake) guard(c *tls.Config) *tls.Config {
	c = c.Clone()
	verify := c.ClientAuth == tls.RequireAndVerifyClientCert || c.ClientAuth == tls.VerifyClientCertIfGiven
	switch c.ClientAuth {
	case tls.RequireAndVerifyClientCert:
		c.ClientAuth = tls.RequireAnyClientCert
	case tls.VerifyClientCertIfGiven:
		c.ClientAuth = tls.RequestClientCert
	}
	check, now := c.VerifyConnection, c.Time
	if now == nil {
		now = time.Now
	}
	c.VerifyConnection = func(state tls.ConnectionState) (err error) {
		if verify && len(state.PeerCertificates) > 0 {
			state.VerifiedChains, err = Verify(state.PeerCertificates, c.ClientCAs, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, now())
		}
		if err == nil && check != nil {
			err = check(state)
		}
		if err == nil {
			h.Known()
		}
		return err
	}
	return c
}
