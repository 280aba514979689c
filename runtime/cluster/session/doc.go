// Package session makes the lossy connection between two nodes reliable and ordered, for
// messages of many lanes. A lane is a pair of a sending and a receiving instance, or a
// sequence of control messages.
//
//	s, err := session.New(session.Config{Topology: "bank", Plan: hash, Node: "n1", Peer: "n2", Boot: boot, Rand: rng})
//	err = s.Send(lane, message)
//	for f := s.Frame(now); f != nil; f = s.Frame(now) {
//		transport.Send("n2", transport.Message{Group: group, Payload: f})
//	}
//	deliveries, err = s.Receive(now, frame, deliveries[:0]) // a frame of n2 has arrived
//	for _, e := range s.Events() { … }
//	at, ok := s.Next() // call Frame again at this time at the latest
//
// A [Session] is one end of the connection. It has no goroutine, clock or network: times
// and frames are arguments and results. Each node has a session for each of its peers.
//
// # Guarantees
//
// An incarnation is a process: a node's name and a random boot id. Between two
// incarnations, the messages of a lane arrive exactly once and in the order in which they
// were sent. Lanes have no order among each other and do not wait for each other: a large
// message is divided into fragments, and messages of other lanes go between them. A
// message of a lane that had none waits for one fragment of each class at most. The lanes
// 0 to [ControlLanes]-1 go before all others.
//
// When the peer restarts, the session forgets all messages that it was given before, and
// reports [PeerRestarted]. The upper layer sends again what the new incarnation needs.
// Then Send returns ErrUnreadEvents until the upper layer has called Events. So no message
// that was meant for the former incarnation reaches the new one.
//
// A frame of a former incarnation is never taken for one of the current. A process that
// was replaced by another one is refused from then on, so two processes with one name
// do not alternate.
//
// Memory is limited, whatever the peer sends.
//
// # Ownership
//
// A message belongs to the session from Send on, and must not change. Frame copies it into
// a frame, which the session reads until it is acknowledged. A message that Receive
// returns is part of the received frame if it came in one piece.
package session
