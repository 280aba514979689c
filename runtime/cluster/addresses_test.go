package cluster

import (
	"testing"

	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/transport"
)

// addressBook is a transport that only has addresses.
type addressBook struct {
	transport.Transport
	links, announced map[string]string // by peer
}

func (b *addressBook) SetPeer(name, address string) { b.links[name] = address }

func (b *addressBook) PeerAddress(name string) (address string, ok bool) {
	address, ok = b.announced[name]
	return address, ok
}

// TestLinksToProcessesThatEnter: while a process of n2 waits to enter at a new address, which failure detection
// has given to the link, other changes of the address table do not lead the link back to the former address.
func TestLinksToProcessesThatEnter(t *testing.T) {
	book := &addressBook{links: map[string]string{}, announced: map[string]string{"n3": "new:3"}}
	g := newGone()
	l := newLinks(book, &g)
	n2, n3, n4 := &table.Node{Name: "n2", Address: "old:2", Boot: 2}, &table.Node{Name: "n3", Address: "old:3", Boot: 3}, &table.Node{Name: "n4", Address: "old:4", Boot: 4}
	look := func(nodes ...*table.Node) { l.follow(nodes, "n1") }
	expect := func(name, address string) {
		t.Helper()
		if got := book.links[name]; got != address {
			t.Errorf("the link to %s leads to %q, want %q", name, got, address)
		}
	}
	look(n2, n3)
	expect("n2", "old:2")
	expect("n3", "new:3") // it is connected, and not in the table yet
	l.SetPeer("n2", "new:2")
	look(n2, n3, n4)
	expect("n2", "new:2")
	expect("n4", "old:4")
	look(&table.Node{Name: "n2", Address: "newer:2", Boot: 22}, n3, n4)
	expect("n2", "newer:2")
	look(n3, n4)
	look(n2, n3, n4)
	expect("n2", "old:2") // it was not in the table in the meantime
}
