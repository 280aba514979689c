package cluster

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/cluster/session"
)

func FuzzEnvelope(f *testing.F) {
	f.Add(appendEnvelope(nil, "", []byte("frame")))
	f.Add(appendEnvelope(nil, "n1", nil))
	f.Add([]byte{255, 'n'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var name string
		var frame []byte
		var ok bool
		allocated.Within(t, len(b), func() { name, frame, ok = cutEnvelope(b) })
		if !ok {
			return
		}
		if len(frame) > session.FrameBytesMax {
			t.Fatalf("a frame has %d bytes", len(frame))
		}
		if again := appendEnvelope(nil, name, frame); !bytes.Equal(again, b) {
			t.Fatalf("got %x, want %x", again, b)
		}
	})
}

func FuzzPassedOn(f *testing.F) {
	f.Add((&passedOn{client: clientPrefix + "A", owner: "spiffe://d/t/client/web", frame: []byte("frame")}).append(nil))
	f.Add((&passedOn{toClient: true, client: clientPrefix + "A"}).append(nil))
	f.Add([]byte{2, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p passedOn
		var err error
		allocated.Within(t, 2*len(b), func() { err = p.read(b) })
		if err != nil {
			return
		}
		var again passedOn
		if err := again.read(p.append(nil)); err != nil || again.client != p.client || again.owner != p.owner || again.toClient != p.toClient || !bytes.Equal(again.frame, p.frame) {
			t.Fatalf("got %+v and the error %v, want %+v", again, err, p)
		}
		if !isClient(p.client) {
			t.Fatalf("%q is the name of a node", p.client)
		}
	})
}

func TestEnvelopeIsBounded(t *testing.T) {
	if _, _, ok := cutEnvelope(appendEnvelope(nil, "n1", make([]byte, session.FrameBytesMax))); !ok {
		t.Error("the largest frame is refused")
	}
	if _, _, ok := cutEnvelope(appendEnvelope(nil, "", make([]byte, session.FrameBytesMax+1))); ok {
		t.Error("a larger frame is accepted")
	}
}

func TestNamesOfClients(t *testing.T) {
	for name, valid := range map[string]bool{
		"": false, "SHORT": false, strings.Repeat("A", clientNameMin): true, strings.Repeat("7", clientNameMax): true,
		strings.Repeat("A", clientNameMax+1): false, strings.Repeat("A", 20) + "\n": false, strings.Repeat("a", 20): false, strings.Repeat("A", 20) + ":": false,
	} {
		if err := checkClientName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestNodesRememberFewClients fills the clients that a node remembers.
func TestNodesRememberFewClients(t *testing.T) {
	c := newClients(&Node{})
	enter := func(owner string, i int) error {
		_, err := c.enter(fmt.Sprint(clientPrefix, owner, i), owner)
		return err
	}
	for i := range ownerMax {
		if err := enter("a", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := enter("a", ownerMax); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "with the certificate a") {
		t.Errorf("too many clients with one certificate: %v", err)
	}
	if err := enter("a", 0); err != nil {
		t.Errorf("a client that is known: %v", err)
	}
	if _, err := c.enter(clientPrefix+"a0", "b"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a client with the name of another one: %v", err)
	}
	for i := range clientsMax - ownerMax {
		if err := enter(fmt.Sprint("x", i), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := enter("last", 0); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too many clients: %v", err)
	}
	c.forgotten(clientPrefix + "a0")
	if err := enter("a", ownerMax); err != nil {
		t.Errorf("a client after another one was forgotten: %v", err)
	}
	if len(c.known) != clientsMax || c.owners["a"] != ownerMax {
		t.Errorf("%d clients are known, %d of them with one certificate", len(c.known), c.owners["a"])
	}
}
