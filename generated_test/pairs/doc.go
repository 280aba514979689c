// Package pairs runs the topologies that package pairtests generates, and compares what happened
// with a ledger.
//
// All topologies have the same processors: feed and other send numbered messages to work, work
// sends a message to sink for each of them, and morgue gets dead letters. They differ in their
// options. Each handler call writes into the ledger when it begins and when it succeeds, and each
// sender when a send has returned. A Plan says where a method fails, and in which way.
//
// Check runs a topology with a plan, on workers or under the Stepper. Then it compares the ledger
// with the figures of Snapshot: each copy of each message that was accepted must have one end. A
// copy is handled, is a dead letter, or is dropped and counted.
package pairs
