// Package transport carries messages between the nodes of a topology: the messages that
// the members of a replicated state machine send each other, for many groups at once.
//
//	t.Handle(transport.GroupID("bank", "ledger"), func(from string, payloads [][]byte) { … })
//	t.Send("n2", transport.Message{Group: transport.GroupID("bank", "ledger"), Payload: b})
//
// There are three implementations. Package grpc in this folder uses the network. [Memory]
// connects nodes of one process. [Network] is for simulations: it has no goroutines and
// no clock.
//
// # Guarantees
//
// Send never blocks. A message arrives at most once, complete, and only at the node that
// it was sent to. While a peer is connected and the queue has room, no message is lost. A
// message is dropped if the queue is full or the peer cannot be reached. Dropped messages
// are counted. The sender must send important messages again, as Raft does. Memory is
// limited, whatever a peer does.
//
// Messages of one group to one peer arrive in the order in which they were sent, whatever
// their sizes and through reconnects. When a connection breaks, some messages are missing,
// but none arrives late. The [Class] of a message changes this order: an Urgent message
// overtakes others, and others overtake a Bulk message. Groups do not wait for each other,
// and each group and class has its own room in the queue ([Quota]).
//
// # Limits
//
// There are no replies and no acknowledgements. Messages of different groups have no order.
package transport
