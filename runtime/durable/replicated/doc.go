// Package replicated keeps the promises of a durable server on several nodes, with Raft.
//
//	n, err := replicated.Open(replicated.Config{
//		Raft:   raft.Config{Topology: "shop", Group: "promises", Node: "n1", Peers: peers, Dir: dir},
//		URL:    "https://10.0.0.1:8001",
//		Client: client.Options{Token: token, TLS: certificates},
//	})
//	s, err := server.Listen(server.Config{Backend: n, Local: n.Local(), Listen: "10.0.0.1:8001"})
//	result, err := n.Do(ctx, operation)
//
// A [Node] is a protocol.Backend: servers and workers use it like an engine, on any node.
//
// # Guarantees
//
// When Do returns a result below 400, its effects are on the disks of a majority of the
// nodes. They survive any crash of fewer than half of them. Operations take effect one
// after the other, whichever node was asked. If the outcome of an operation is not known,
// because the leader failed while it was carried out, Do returns an error.
//
// # Limits
//
// The tables are in the memory of each node, and a snapshot of them is written to the
// disk from time to time. A store on one disk (package store) has no such limit.
//
// While no node leads, operations are answered with status 503 after [Config].Wait. A leader
// that is closed makes another node the leader; after a crash the others elect one, which
// takes one to two seconds with the default settings.
// Connections stay open and receive messages again when a node leads. Each node has at most
// Config.Engine.ConnectionsMax of them, and so has the leader for all nodes.
//
// With [Config].URL, the message that a node was passing on from the leader to its own
// worker, when the stream of the worker broke, is lost. The retry of the task repeats
// messages of kind execute; a listener asks for the promise after it has connected again. A
// worker that is connected to the leader loses no message that way.
//
// Without URL, the leader waits until the other node confirms that its worker has taken a
// message, and only then sends the next one of this connection. If the confirmation is lost,
// the worker gets the message again. So one connection receives at most one message per
// round trip between the nodes.
//
// A message of kind unblock is stored until the leader has committed that it was taken. If
// the leader fails before, the next one sends the message again. A message of kind execute
// that is lost with the leader is repeated by the retry of its task.
//
// # Design
//
// The node that leads the Raft group runs the engine, with a store whose commits are
// entries of the log: an entry is the list of the records that a transaction wrote, or a
// part of it. The other nodes apply the entries, and forward operations and connections to
// the leader: to its server, or without [Config].URL over the connections of the group. So
// timeouts fire on one node, and messages have one sender.
//
// A new leader first proposes an entry that begins an epoch. Entries of an earlier epoch
// that come after it are refused on every node. So an engine that does not know yet that
// it was replaced cannot commit.
package replicated
