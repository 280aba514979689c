// Package clusteretcd has an address table in etcd.
package clusteretcd

import "github.com/topogen/topogen/runtime/topo"

// Item goes to another node.
type Item struct{ N int }

// Items is how many items each source sends.
const Items = 5000

// Source sends items.
type Source struct{ n int }

// Ping sends an item.
func (s *Source) Ping(out *SourceSender) error {
	if s.n++; s.n > Items {
		return topo.Done
	}
	return out.SendItem(Item{s.n})
}

// Sink counts the items.
type Sink struct{ Items, Sum int }

// ReceiveItem counts the item.
func (s *Sink) ReceiveItem(m Item) {
	s.Items++
	s.Sum += m.N
}
