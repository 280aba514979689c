package grpc

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestCheckAddress(t *testing.T) {
	for _, address := range []string{
		"", ":7101", "n1:7101", "n1.example.org:7101", "n1.example.org.:1", "10.0.0.1:65535", "[2001:db8::1]:7101", "node_1:7101",
		strings.Repeat("a.", 126) + "a:65535",
	} {
		if err := checkAddress(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{
		"n1", ":", ":0", ":65536", ":-1", ":+1", "n1:http", "n1:", "2001:db8::1:7101", "[2001:db8::1]", "[]:1x", "0.0.0.0:1", "[::]:1", "224.0.0.1:1",
		"[ff02::1]:1", "[fe80::1%eth0]:1", "1.2.3:1", "1.2.3.4.5:1", "a b:1", "a\x00:1", "a\n:1", "a/b:1", "user@host:1", "http://a:1", "unix:/tmp/x:1", "..:1", "é:1",
		strings.Repeat("a", 64) + ":1", strings.Repeat("a.", 127) + "aa:1",
	} {
		if err := checkAddress(address); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}

func TestAdvertisedAddress(t *testing.T) {
	listener := &net.TCPAddr{IP: net.IPv4zero, Port: 7101}
	from := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.2:40000"))
	for _, test := range []struct{ configured, announced, dialled string }{
		{"n1.example.org:0", "n1.example.org:7101", "n1.example.org:7101"},
		{"10.0.0.1:7101", "10.0.0.1:7101", "10.0.0.1:7101"},
		{"[2001:db8::1]:7101", "[2001:db8::1]:7101", "[2001:db8::1]:7101"},
		{"0.0.0.0:7101", ":7101", "10.0.0.2:7101"},
		{"[::]:7101", ":7101", "10.0.0.2:7101"},
		{":7101", ":7101", "10.0.0.2:7101"},
		{"[fe80::1%eth0]:7101", "", ""},
	} {
		announced := advertised(test.configured, listener)
		if dialled := (&hello{address: announced}).dialAddress(from); announced != test.announced || dialled != test.dialled {
			t.Errorf("%s: announced %q, dialled at %q, want %q and %q", test.configured, announced, dialled, test.announced, test.dialled)
		}
	}
}

// TestAnswerToAStranger: a node that is not in the configuration announces where it
// listens, so that others can answer. Before SetPeer each answer is dropped, and the
// log says so.
func TestAnswerToAStranger(t *testing.T) {
	t.Parallel() // it waits for connections
	both(t, func(t *testing.T, p *pki) {
		var log logged
		c := p.config(t, "n1")
		c.Logger = log.logger()
		member, stranger := start(t, c), start(t, p.config(t, "n2"))
		answers := newTally(t)
		stranger.Handle(ledger, answers.receive)
		received := make(chan struct{}, 1)
		member.Handle(ledger, func(from string, _ [][]byte) { received <- struct{}{} })
		if address, ok := member.PeerAddress("n2"); ok {
			t.Errorf("the address is %q, although the node has not connected", address)
		}
		stranger.SetPeer("n1", member.Addr().String())
		await(t, "the node to be connected", func() bool { return connected(stranger, member) })
		stranger.Send("n1", number(0))
		<-received

		for range 3 {
			member.Send("n2", number(0))
		}
		if s := member.Stats(); s.Dropped != 3 || log.count("WARN", "address is not known", "peer=n2") != 1 {
			t.Errorf("%+v\n%s", s, &log)
		}
		address, ok := member.PeerAddress("n2")
		if !ok || address != stranger.Addr().String() {
			t.Fatalf("the address is %q, want %q", address, stranger.Addr())
		}
		member.SetPeer("n2", address)
		member.Send("n2", number(0))
		await(t, "the answer", func() bool { return answers.from("n1") == 1 })

		member.RemovePeer("n2")
		stranger.Close()
		await(t, "the address to be forgotten", func() bool { _, ok := member.PeerAddress("n2"); return !ok })
	})
}

// TestAddressWithoutAHost: a node that listens on all of its addresses is dialled at
// the address that it connected from.
func TestAddressWithoutAHost(t *testing.T) {
	var none *pki
	c := none.config(t, "n2")
	c.Address, c.Insecure = ":0", true
	a, b := start(t, none.config(t, "n1")), start(t, c)
	b.SetPeer("n1", a.Addr().String())
	await(t, "the node to be connected", func() bool { return connected(b, a) })
	_, port, err := net.SplitHostPort(b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if address, ok := a.PeerAddress("n2"); !ok || address != "127.0.0.1:"+port {
		t.Errorf("the address is %q", address)
	}
}

// TestHelloWithoutAnAddress: a node of the previous version does not announce an
// address, and is accepted.
func TestHelloWithoutAnAddress(t *testing.T) {
	var none *pki
	a, _, alive := pair(t, none, nil)
	s := evil(t, a, nil)
	if address, ok := a.PeerAddress("evil"); ok {
		t.Errorf("the address is %q", address)
	}
	s.CloseSend()
	alive()
}
