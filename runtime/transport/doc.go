// Package transport carries messages between the nodes of a topology: what the
// members of a replicated state machine tell each other, for many groups at once.
//
//	t.Handle(transport.GroupID("bank", "ledger"), func(from string, payloads [][]byte) { … })
//	t.Send("n2", transport.Message{Group: transport.GroupID("bank", "ledger"), Payload: b})
//
// There are three: package grpc beside this one goes over the network, [Memory]
// joins nodes of one process, and [Network] is for simulations, which have no
// goroutines and no clock but their own.
//
// # Guarantees
//
// Send never blocks. A message arrives at most once, whole, at the node that it
// was sent to; while a peer is connected and the queue has room, none is lost. A message that is dropped, because the room is used up or the peer cannot be
// reached, is counted: the sender sends again what matters, as Raft does. Memory is
// bounded whatever a peer does.
//
// Messages of one group to one peer arrive in the order in which they were sent,
// whatever their sizes and through reconnects: where a connection breaks some are
// missing, and none comes late. A message may leave that order by its [Class]: an
// Urgent one overtakes, a Bulk one lets others pass. Groups do not wait for each
// other, and each group and class has room of its own ([Quota]).
//
// # Limits
//
// There is no answer and no acknowledgement. Between groups there is no order.
package transport
