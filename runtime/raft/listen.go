package raft

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

// wireVersion is that of what nodes send each other. It changes when a node of one
// release could misunderstand one of another.
const wireVersion = "topogen-raft-2"

// assembledMessages is how many of the largest messages may be under way to a node at the
// same time: one of each peer in a group of usual size. More are dropped, and sent again.
const assembledMessages = 16

// listeners are the transports of this process, by the address where they listen:
// all groups of a node share one.
var listeners = struct {
	sync.Mutex
	byAddress map[string]*listener
}{byAddress: map[string]*listener{}}

type listener struct {
	*grpc.Transport
	key       grpc.Config // what all who share it must agree in
	files     grpc.TLS    // likewise
	operators *operators

	mu     sync.Mutex
	groups map[string]bool            // that share it
	wanted map[string]map[string]bool // peers, by the groups that they are members of
}

// shared is the part of a listener that a group has.
type shared struct {
	*listener
	group string
}

// SetPeer notes that the group needs a peer.
func (s *shared) SetPeer(name, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[name] == nil {
		s.wanted[name] = map[string]bool{}
	}
	s.wanted[name][s.group] = true
	s.Transport.SetPeer(name, address)
}

// RemovePeer lets go of a peer, where no other group needs it.
func (s *shared) RemovePeer(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted[name], s.group)
	if len(s.wanted[name]) == 0 {
		delete(s.wanted, name)
		s.Transport.RemovePeer(name)
	}
}

// listen joins or makes the transport of a node. Its leave is to be called when it
// is not needed any more.
func listen(c *Config) (_ *shared, err error) {
	key := grpc.Config{
		Node: c.Node, Topology: c.Topology, Version: wireVersion, TrustDomain: c.TrustDomain,
		Address: c.Peers[c.Node], Insecure: c.Insecure,
	}
	files := grpc.TLS{Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA}
	listeners.Lock()
	defer listeners.Unlock()
	l := listeners.byAddress[key.Address]
	if l == nil {
		config := key
		config.Peers, config.Logger = c.Peers, c.Logger
		config.MessageBytesMax, config.ReassemblyBytesMax = peerBytesMax, assembledMessages*peerBytesMax
		if files != (grpc.TLS{}) {
			config.TLS = &files
		}
		l = &listener{key: key, files: files, operators: newOperators(), groups: map[string]bool{}, wanted: map[string]map[string]bool{}}
		config.Register = l.operators.register
		if l.Transport, err = grpc.Listen(config); err != nil {
			return nil, err
		}
		listeners.byAddress[key.Address] = l
	} else if l.key.Node != key.Node || l.key.Topology != key.Topology || l.key.TrustDomain != key.TrustDomain || l.key.Insecure != key.Insecure || l.files != files {
		return nil, fmt.Errorf("raft: node %q already listens on %s with a different configuration", l.key.Node, key.Address)
	}
	if l.groups[c.Group] {
		return nil, fmt.Errorf("raft: node %q already runs in group %q: each group needs its own name", c.Node, c.Group)
	}
	l.groups[c.Group] = true
	return &shared{l, c.Group}, nil
}

func (s *shared) leave() error {
	listeners.Lock()
	defer listeners.Unlock()
	delete(s.groups, s.group)
	if len(s.groups) > 0 {
		s.mu.Lock()
		names := slices.Collect(maps.Keys(s.wanted))
		s.mu.Unlock()
		for _, name := range names {
			s.RemovePeer(name)
		}
		return nil
	}
	delete(listeners.byAddress, s.key.Address)
	return s.Transport.Close()
}
