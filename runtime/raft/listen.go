package raft

import (
	"fmt"
	"sync"

	"github.com/topogen/topogen/runtime/transport/grpc"
)

// wireVersion is that of what nodes send each other. It changes when a node of one
// release could misunderstand one of another.
const wireVersion = "topogen-raft-1"

// listeners are the transports of this process, by the address where they listen:
// all groups of a node share one.
var listeners = struct {
	sync.Mutex
	byAddress map[string]*listener
}{byAddress: map[string]*listener{}}

type listener struct {
	*grpc.Transport
	key       grpc.Config // what all who share it must agree in
	users     int
	operators *operators
}

// listen joins or makes the transport of a node. Its leave is to be called when it
// is not needed any more.
func listen(c *Config) (l *listener, err error) {
	key := grpc.Config{
		Node: c.Node, Topology: c.Topology, Version: wireVersion, TrustDomain: c.TrustDomain,
		Address: c.Peers[c.Node], Insecure: c.Insecure,
	}
	files := grpc.TLS{Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSCA}
	listeners.Lock()
	defer listeners.Unlock()
	if l = listeners.byAddress[key.Address]; l == nil {
		config := key
		config.Peers, config.Logger = c.Peers, c.Logger
		if files != (grpc.TLS{}) {
			config.TLS = &files
		}
		l = &listener{key: key, operators: newOperators()}
		config.Register = l.operators.register
		if l.Transport, err = grpc.Listen(config); err != nil {
			return nil, err
		}
		listeners.byAddress[key.Address] = l
	} else if l.key.Node != key.Node || l.key.Topology != key.Topology || l.key.TrustDomain != key.TrustDomain || l.key.Insecure != key.Insecure {
		return nil, fmt.Errorf("raft: node %q already listens on %s, with another configuration", l.key.Node, key.Address)
	}
	l.users++
	return l, nil
}

func (l *listener) leave() error {
	listeners.Lock()
	defer listeners.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	delete(listeners.byAddress, l.key.Address)
	return l.Transport.Close()
}
