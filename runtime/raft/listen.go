package raft

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	gogrpc "google.golang.org/grpc"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

// wireVersion is the version of the messages between nodes. It must change when nodes of
// two releases could misunderstand each other.
const wireVersion = "topogen-raft-2"

// assembledMessages is how many of the largest messages a node may receive at the same
// time: one of each peer in a group of usual size. Further messages are dropped, and the
// peers repeat them.
const assembledMessages = 16

// listeners are the transports of this process, by the address that they listen on. All
// groups of a node share one transport, unless the port is 0: then each group listens on a free
// port of its own, because nothing shows whether two groups belong to one node.
var listeners = struct {
	sync.Mutex
	byAddress map[string]*listener
}{byAddress: map[string]*listener{}}

type listener struct {
	*grpc.Transport
	key       grpc.Config // must be the same for all groups that share the listener
	files     grpc.TLS    // must be the same, too
	operators *operators
	calls     *calls

	mu         sync.Mutex
	groups     map[string]bool            // groups that share the listener
	peerGroups map[string]map[string]bool // by peer: the groups that need it
}

// shared is a group's view of a listener.
type shared struct {
	*listener
	group string
}

// SetPeer records that the group needs a peer.
func (s *shared) SetPeer(name, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peerGroups[name] == nil {
		s.peerGroups[name] = map[string]bool{}
	}
	s.peerGroups[name][s.group] = true
	s.Transport.SetPeer(name, address)
}

// RemovePeer removes a peer, unless another group needs it.
func (s *shared) RemovePeer(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peerGroups[name], s.group)
	if len(s.peerGroups[name]) == 0 {
		delete(s.peerGroups, name)
		s.Transport.RemovePeer(name)
	}
}

// listen returns the transport of a node, which it creates if needed. The caller must
// call leave when the group does not need the transport any more.
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
		config.TLSNames, config.InsecureName = nodeTLSNames, insecureName
		if c.ownTLS {
			config.TLSNames = tlsNames
		}
		config.MessageBytesMax, config.ReassemblyBytesMax = peerBytesMax, assembledMessages*peerBytesMax
		if files != (grpc.TLS{}) {
			config.TLS = &files
		}
		l = &listener{key: key, files: files, operators: newOperators(), calls: newCalls(), groups: map[string]bool{}, peerGroups: map[string]map[string]bool{}}
		config.Register, config.NodeService = l.register, callService
		config.Limits = map[string]grpc.CallLimit{
			operateMethod: {Time: operateTimeMax + operateAnswer},
			"/" + operateService + "/" + backupMethod: {Time: backupTimeMax + operateAnswer},
			"/" + callService + "/" + callMethod:      {Time: grpc.NoTimeLimit}, // the caller may wait for messages, which come at any time
		}
		if l.Transport, err = grpc.Listen(config); err != nil {
			return nil, err
		}
		if anyPort(key.Address) {
			l.key.Address = l.Addr().String()
		}
		listeners.byAddress[l.key.Address] = l
	} else if l.key.Node != key.Node || l.key.Topology != key.Topology || l.key.TrustDomain != key.TrustDomain || l.key.Insecure != key.Insecure || l.files != files {
		return nil, fmt.Errorf("raft: node %q already listens on %s with a different configuration", l.key.Node, key.Address)
	}
	if l.groups[c.Group] {
		return nil, fmt.Errorf("raft: node %q already runs in group %q: each group needs its own name", c.Node, c.Group)
	}
	l.groups[c.Group] = true
	return &shared{l, c.Group}, nil
}

// anyPort reports whether the port of an address, which is valid, is 0: any free port.
func anyPort(address string) bool {
	_, text, _ := net.SplitHostPort(address)
	port, err := net.LookupPort("tcp", text)
	return err == nil && port == 0
}

func (l *listener) register(r gogrpc.ServiceRegistrar) {
	l.operators.register(r)
	l.calls.register(r)
}

func (s *shared) leave() error {
	listeners.Lock()
	defer listeners.Unlock()
	delete(s.groups, s.group)
	if len(s.groups) > 0 {
		s.mu.Lock()
		names := slices.Collect(maps.Keys(s.peerGroups))
		s.mu.Unlock()
		for _, name := range names {
			s.RemovePeer(name)
		}
		return nil
	}
	delete(listeners.byAddress, s.key.Address)
	return errors.Join(s.calls.close(), s.Transport.Close())
}
