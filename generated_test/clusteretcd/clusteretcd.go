// Package clusteretcd has an address table in etcd.
package clusteretcd

import "github.com/topogen/topogen/runtime/topo"

// Item goes to another node.
type Item struct{ N int }

// Source sends one item.
type Source struct{}

// Ping sends the item.
func (s *Source) Ping(out *SourceSender) error {
	if err := out.SendItem(Item{1}); err != nil {
		return err
	}
	return topo.Done
}

// Sink counts the items.
type Sink struct{ Items int }

// ReceiveItem counts the item.
func (s *Sink) ReceiveItem(Item) { s.Items++ }
