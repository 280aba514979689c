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
// was sent to; over a link that is healthy and not overrun none is lost. What is
// dropped, because a queue is full or a peer cannot be reached, is counted: who
// sends has to send again what matters, as Raft does. Memory is bounded whatever a
// peer does.
//
// # Limits
//
// Messages may overtake each other: a large one does not hold up the small ones
// behind it. Small ones of one group to one peer keep their order as long as the
// link holds. There is no answer and no acknowledgement.
package transport
