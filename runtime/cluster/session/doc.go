// Package session makes the lossy connection between two nodes reliable and ordered, for
// messages of many lanes. A lane is a pair of a sending and a receiving instance, or a
// sequence of control messages.
//
//	s, err := session.New(session.Config{Topology: "bank", Plan: hash, Node: "n1", Peer: "n2", Boot: boot, Rand: rng})
//	err = s.Send(lane, message)
//	s.Ready(other, source) // the session takes messages from the source when a frame has room
//	for f := s.Frame(now); f != nil; f = s.Frame(now) {
//		transport.Send("n2", transport.Message{Group: group, Payload: f})
//	}
//	deliveries, err = s.Receive(now, frame, deliveries[:0]) // a frame of n2 has arrived
//	for _, e := range s.Events() { … }
//	at, ok := s.Next() // call Frame again at this time at the latest
//
// A [Session] is one end of the connection. It has no goroutine, clock or network: times
// and frames are arguments and results. Each node has a session for each of its peers. All
// frames of a session must have the same group and class of the transport, because the
// transport keeps the order only within them.
//
// # Guarantees
//
// An incarnation is a process: a node's name and a random boot id. Between two
// incarnations, the messages of a lane arrive exactly once and in the order in which they
// were sent. Lanes have no order among each other and do not wait for each other: a large
// message is divided into fragments, and messages of other lanes go between them. A
// message in a lane that had none goes before lanes that always have messages, after one
// fragment of them at most. The lanes 0 to [ControlLanes]-1 go before all others. They
// leave a quarter of each frame to the others.
//
// When the peer restarts, the session forgets all messages and sources that it was given before, and
// reports [PeerRestarted]. The upper layer sends again what the new incarnation needs.
// Send returns [ErrUnreadEvents] until the upper layer has called Events. So no message
// for the former incarnation reaches the new one. Parts of messages of the former
// incarnation are dropped.
//
// A frame of a former incarnation is never taken for one of the current. A process that
// was replaced by another one is refused until it restarts, so two processes with one name
// do not alternate. The refused process reports it. The upper layer can also
// exclude a process that must not come back ([Session.Exclude]).
//
// Memory is limited, whatever the peer sends: to WindowBytes and a frame for frames that
// wait for a missing one, to ReassemblyBytes for incomplete messages, and to 80 bytes for
// each of SlotsMax lanes. A buffer has at most twice the bytes that have arrived. After a
// gap, one call of Receive returns the messages of up to a window of frames. A frame with
// an error has no effect, as if it was lost. It is counted, and Receive says what is wrong
// with it.
//
// # Limits
//
// A session confirms that messages have reached the other process, not that they were
// handled. It does not limit how much the receiver has not handled yet. Both are tasks of
// the upper layer. The window is constant: on a link of 1 Mbit/s, control messages wait in
// the transport behind up to 4 MiB. Frames have no checksum; use a transport with TLS.
//
// # Ownership
//
// A message belongs to the session from Send on, and must not change. A message of a [Source]
// remains with the source. Frame copies messages into
// a frame, which the session reads until it is acknowledged. After Frame it reads only the rest of a
// message with more than FragmentBytes. A message that Receive
// returns is part of the received frame if it came in one piece.
//
// # Handshake
//
// A process sends hellos until the peer knows it. A hello holds a nonce, and an answer
// holds the nonce that it answers. A process accepts another one only if the hello
// contains its own nonce: then the other process is alive, and the hello is not a late
// frame. It takes three hellos. Data follows the second one.
//
//	n1 → n2  hello of 1, nonce x
//	n2 → n1  hello of 2, nonce y, answers 1 and x    n1 accepts process 2
//	n1 → n2  hello of 1, nonce x, answers 2 and y    n2 accepts process 1
//
// A frame of an unknown process is answered with a hello, at most one in retry.min after
// the first four. A node that cannot work with the peer answers with a refusal.
//
// # Repetition
//
// Each transmission of a data frame has a stamp, the time in nanoseconds. An acknowledgement
// returns the highest stamp that has arrived. So each acknowledgement gives a sample of the
// round trip, also after repetitions. A frame whose last transmission is older than this
// stamp, and which has not arrived, is lost, because a transport keeps the order. It is
// sent again at once. Repetition is selective: the acknowledgement has a bitmap of frames
// after the missing one, and the receiver keeps these. Otherwise one lost frame would cost
// a window of 4 MiB. If no acknowledgement comes, the first frame is repeated after the
// timeout of RFC 6298, which doubles up to retry.max, and its answer says what else is
// missing. So a timeout costs one frame, even if it was too early.
//
// Frames are handled in the order of their numbers. So an announced lane, and the
// fragments of a message, need no numbers of their own.
//
// # Frames
//
// Numbers are varints, except for boot ids, nonces and lanes: these have 8 bytes, the
// lowest first. Strings have their length before them. The first byte is the kind:
//
//	1 hello      version, from, nonce, to, echo, flags, topology, plan, from name, to name
//	2 refusal    version, from, to, echo, reason (1 byte), text
//	3 ack        from, to, ack
//	4 data       from, to, number, stamp, items
//	5 data, ack  from, to, ack, number, stamp, items
//
// from and to are boot ids. echo is the nonce of the hello that is answered. Flags of a hello
// are 1, the sender has accepted the receiver, and 2, it knows that it was accepted. The
// start of a hello, up to its nonce, and the refusal are the same in all versions. 0x80 is
// added to the kind of a data frame that must be acknowledged at once. An ack is
//
//	last    all frames up to this number have arrived
//	echo    the highest stamp that has arrived
//	delay   microseconds since then
//	bitmap  length in bytes, and bytes: bit i says that frame last+2+i has arrived
//
// An item begins with a number. Its low two bits are the kind, and the other bits a length
// or a slot. A message of 64 bytes costs 2 bytes.
//
//	0 message    a complete message of the current lane with this length
//	1 first      a fragment with this length; the length of the whole message is before it
//	2 next       the next fragment with this length; a message ends when its length is reached
//	3 lane       slot × 2: the current lane is the one with this slot
//	             slot × 2 + 1: the slot gets the lane that follows, which is then current
//
// The first item of a frame names a lane.
package session
