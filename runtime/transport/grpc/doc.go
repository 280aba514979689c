// Package grpc is the transport between nodes on several machines: messages in
// frames over gRPC, with mutual TLS.
//
//	t, err := grpc.Listen(grpc.Config{
//		Node: "n1", Topology: "bank", TrustDomain: "example.org", Address: "10.0.0.1:7101",
//		TLS:   &grpc.TLS{Cert: "n1.crt", Key: "n1.key", CA: "ca.crt"},
//		Peers: map[string]string{"n2": "10.0.0.2:7101", "n3": "10.0.0.3:7101"},
//	})
//	t.Handle(transport.GroupID("bank", "ledger"), receive)
//	t.Send("n2", transport.Message{Group: transport.GroupID("bank", "ledger"), Payload: b})
//
// # Connections
//
// Whoever sends dials: a node holds one connection with one stream to each of its
// peers, and takes one from each. So each direction has a queue, a flow control and
// a wait after failures of its own, and no rule has to say which of two
// connections stays. Messages that wait for a peer go out in one frame, up
// to 512 messages or 256 KiB; a message of more than 1,088 KiB goes in chunks of 256 KiB.
// Smaller messages of its group wait behind it. Those of other groups go between two
// chunks, and so do urgent ones. On Linux the system holds no more than 128 KiB of a
// connection unsent, since nothing overtakes what was written.
//
// Each node says in its hello where it listens. So a node that is not in the
// configuration can be answered: PeerAddress has its address, SetPeer takes it.
// A message to a node whose address is not known is dropped, counted and logged.
//
// # Identity
//
// A node is who its certificate says (package certs), and nobody else: the
// listener takes the name from there, the dialler checks that it reached the node
// that it wanted. Both compare topology, trust domain and versions. A node of the
// same name in another process is refused while the first is connected. Whoever is
// refused is told why, and both ends log it, at most once a minute.
//
// Without TLS nodes are who they say they are. Therefore the transport listens and
// dials on loopback addresses alone then, unless Insecure is set.
//
// # Certificates
//
// The files are read again before each handshake and every ten seconds. When they
// have changed, and fit together, the streams to all peers are made anew with them:
// the new stream stands before the old one is ended, and the peer has taken all of
// the old one before the new one carries anything, so no message is dropped.
// Otherwise what was read before stays in use, and the log says why. A stream ends
// when a certificate of either end expires; the dialler makes it anew when two
// thirds of the time until then have passed.
//
// # Guarantees
//
// Those of package transport. A message whose chunks were cut off by a failure is
// sent again from its beginning, others that were under way are lost. When a frame
// has come along a new stream of a peer, frames that are left of an older one are
// dropped. Memory for each peer is bounded by the queues and MessageBytesMax, on both
// ends, whatever the peer sends, and by ReassemblyBytesMax for all chunks together.
// While a peer cannot be reached nothing waits for it.
//
// # Orders
//
// Config.Register adds services to the same server. With TLS they are for operators
// alone, whose certificates say so; nobody else's are accepted there, and theirs not
// as a node's. [Caller] tells a service who calls, and [Dial] is the operator's end.
//
// What goes over the wire is in transport.proto.
package grpc
