// Package cluster runs one topology on several nodes. Generated code opens a Node if the
// topology file has the section cluster and the process has the name of a node.
//
//	node, err := cluster.Open(cluster.Config{Topology: "orders", Plan: planHash, …}, settings)
//
// # How a message travels
//
// Every node has a unit for each instance of the topology (package piper). If another
// node runs the instance, its unit encodes the messages for it in chunks and passes them
// to the Node. A pair is a sending and a receiving instance. The pair keeps a chunk until
// all its messages were handled, and sends it through the session with the other node
// (package session). There, a guest decodes it and puts its messages into the queues of
// the receiving instance. The handled messages of a pair are confirmed by their number.
//
// A message counts as queued on its sending node until it is confirmed. So capacity and
// full mean the same as within a process: a slow instance pauses only its senders, and a pair never has more than its capacity in flight. There are the same exceptions
// as in one process: a handler call sends all its messages, and full queues do not pause
// the members of a cycle. An edge with drop-oldest and capacity 1 has up to two messages.
// After retry.timeout, messages that were dropped may still be in flight, and later ones come
// in addition. The receiver drops none of them, whatever the policy of their edge is: the
// sending node has applied it. So messages are confirmed in their order. A node takes a
// bounded number of messages of a pair, and others wait on their sending node (excess.go).
//
// # Guarantees
//
// Messages of a pair are handled in the order in which they were sent. A message is
// handled once as long as the processes of both nodes run, whatever the network does. If
// the process of the receiving node ends, messages that it has not confirmed are sent to
// the next process under its name, and messages that it has handled without confirming are
// handled twice. With delivery: at-most-once they are dropped and counted instead.
//
// A message waits for a node that cannot be reached. After retry.timeout it is dropped
// and counted, and a call fails with ErrUnreachable. If such a message was already on its
// way, the other node may still handle it.
//
// A node returns messages for an instance that it does not run, and the sending node looks up
// the instance again (returns.go).
//
// A group of processors finishes when it is quiet on all nodes (agreement.go).
//
// # Clients
//
// A client (ClientConfig, StartClient) is a process outside the cluster that sends messages
// to it. It has a session with each node that runs a receiver. Another node passes on the
// frames of the session while the client cannot reach the receiver's node (clientwire.go).
// A node keeps the session for 10 minutes after the connection has ended, and a client
// gives up its messages before. A node may forget it sooner, and the client then drops what it
// had sent (clientroom.go). So no message is handled twice while the process of its
// node runs. Clients take no part in the agreement about the end, and nodes do not wait for
// them. A node refuses everything from a client but messages of external processors, and
// returns those for instances of other nodes. A client has no instances, so its messages to the
// instances of all nodes go along the link to all other nodes.
//
// # View
//
// Node.View returns what a node knows: nodes, places of instances, and figures of edges and
// connections. The node also answers operators over its transport (operators.go, Operate,
// "topoctl cluster"). With TLS, callers need the certificate of an operator. Both only read.
//
// An operator can also remove a node (removal.go, Remove, "topoctl cluster forget") that has
// joined, and whose process has ended without leaving. The address table must be able to
// change, and failure detection must not see the node as alive. The other nodes drop the
// messages that they keep for it, and finish without it. A client does the same when it asks
// for the address table, also for a node that has left.
//
// # Design
//
// core decides everything. It has no goroutine, clock or network, so simulations drive
// the same code as programs. Node is the driver: a goroutine, a mailbox and timers.
package cluster
