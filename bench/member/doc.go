// Package member compares failure detection by runtime/member with hashicorp/memberlist: how
// long it takes until all nodes know of a failure, against the number of nodes that are
// declared dead although they run.
//
//	export TOPOGEN_SPEED=long
//	go test ./member -run TestDetection -v -timeout 60m                  all tables; takes ten minutes
//	go test ./member -run 'TestDetection/loss=10/topogen' -v             one loss rate and subject
//
// # The load
//
// A [Load] has 100 nodes in virtual time. A message takes 0.5 to 1 ms, and is lost with the
// given probability. Ten nodes are paused for 1 to 15 s, run for 1 to 15 s, are paused
// again, and so on. Every 20 s one of the other nodes stops. Both subjects get the same pauses and
// stops, and the same seeds.
//
// runtime/member runs as a state machine on [transport.Network]: a paused node gets no
// Tick, and its messages wait until it continues. memberlist runs with its goroutines in
// a bubble of testing/synctest, on a simulated transport: a paused node blocks when it
// sends, and its messages wait. Its timers expire during the pause. In a process that is
// stopped with SIGSTOP they expire at its end, with the same effect. Streams of memberlist
// lose no data: a lost segment arrives 200 ms later, or 400 ms, and so on, as with TCP.
// Each segment counts as a packet, and acknowledgements of TCP do not count.
//
// # What is measured
//
//   - Detection: the time from the stop of a node until all nodes that are never paused have
//     declared it dead. The tables show the median and the 9th of 10.
//   - False positives: nodes that run, are never paused, and are declared dead by any other
//     node, including paused ones. Further declarations about the same node within 20 s
//     belong to the same false positive.
//   - Pauses that look like a death: pauses in which the paused node was declared dead. A
//     pause that is longer than the detection cannot be told from a death, so their number
//     depends only on the detection time, with any detector.
//   - Packets: messages per node and second, including everything above.
package member
