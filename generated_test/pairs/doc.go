// Package pairs runs the topologies that package pairtests generates. It records the events of a run
// in a ledger, and compares the ledger with the figures of the runtime.
//
// All topologies have the same processors, with different options: feed and other send numbered
// messages to work, work sends a message to sink for each of these messages, and morgue gets dead
// letters. A topology may also have a state machine, ledger, whose updates come from work: in memory,
// on a disk, or on three nodes, of which one is the topology. A handler call records an event when it begins and when it succeeds. A sender records an
// event when a send has returned. A Plan says which method fails, and in which way.
//
// Check runs a topology with a plan, on workers or under the Stepper. Then it compares the ledger
// with the figures of Snapshot: each copy of an accepted message must have exactly one end: it is
// handled, it becomes a dead letter, or it is dropped and counted.
//
// If edges are durable, a second run without failures continues with the store. A failure of a process
// then also ends the whole program, or crashes the store of the Stepper. Each message that was accepted
// is in the store. Its promise is settled by one of the runs, according to the calls of its handler, and
// the second run calls no handler of a message whose promise the first one has settled.
//
// CheckNodes runs a topology on the nodes of a cluster, all in this process, with a network in memory
// and in virtual time. A NodeFault stops a node, cuts it off, or ends it abruptly at a random event. The
// figures of all processes of all nodes are added up: sent is what was received, dropped, or given to an instance that
// was given up. A copy is handled once. Only a message to a process that has crashed may be handled by
// the next process of its node too, unless its edge has delivery: at-most-once.
package pairs
