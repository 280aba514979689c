// Package grpc is the transport between nodes on several hosts: messages in frames over
// gRPC, with mutual TLS.
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
// The sending node dials: a node opens one connection with one stream to each of its
// peers, and accepts one from each. So each direction has its own queue, flow control and
// backoff, and there is never a choice between two connections. Queued messages for a
// peer go out in one frame of up to 512 messages or 256 KiB. A message of more than
// 1,088 KiB goes in chunks of 256 KiB. Smaller messages of its group wait for its last
// chunk. Messages of other groups and urgent messages go between two chunks. On Linux the
// system holds at most 128 KiB of unsent data of a connection, because urgent messages
// cannot overtake data that was written to the connection.
//
// Each node announces in its hello where it listens. So other nodes can answer a node that
// is not in their configuration: PeerAddress returns its address, and SetPeer accepts it.
// A message to a node without a known address is dropped, counted and logged.
//
// # Identity
//
// The certificate proves a node's name (package certs). The listener takes the name from
// the certificate, and the dialler checks that it reached the right node. Both compare
// topology, trust domain and versions. While a node is connected, another process with
// the same name is refused. A refused node gets the reason, and both ends log it, at most
// once a minute.
//
// Without TLS, names are not verified. So the transport then listens and dials only on
// loopback addresses, unless Insecure is set.
//
// # Certificates
//
// The files are read again before each handshake and every ten seconds. When they have
// changed, and match each other, each stream to a peer is replaced by one with the new
// certificate. No message is dropped: the old stream ends after the new one is open, and
// the new one carries messages after the peer has received everything from the old one.
// If the files do not match, the previous certificate remains in use, and the log says
// why. A stream ends when a certificate of either end expires. The dialler replaces it
// after two thirds of the remaining time. Calls of services end at this time too, and
// their connection shortly after.
//
// # Guarantees
//
// They are those of package transport. A message whose chunks were interrupted by a
// failure is sent again from its beginning. Other messages in transit are lost. When a
// frame has arrived on a new stream of a peer, remaining frames of an older stream are
// dropped. On both ends, memory for each peer is limited by the queues and by
// MessageBytesMax, whatever the peer sends, and by ReassemblyBytesMax for the chunks of
// all peers. While a peer cannot be reached, no messages are queued for it.
//
// # Services for operators and clients
//
// Config.Register adds services to the same server. With TLS only operators may call
// them, and their certificates must say so. An operator cannot connect as a node. [Caller]
// returns to a service who calls it. [Dial] is the operator's end. Clients may call only
// Config.ClientService, and operators may call it too. Only nodes may call
// Config.NodeService; they use Dial with their own certificate.
//
// The wire format is in transport.proto.
package grpc
