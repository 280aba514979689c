// Package edges runs the durable edges of a topology. Generated code calls it; programs use
// [Memory] in tests.
//
// # How a message travels
//
// A send creates a promise in the store and returns when the promise is on disk. The worker
// of the process (package durable) acquires its task, decodes the message, selects the
// instance as for other edges, and puts the activation into the [Inbox] of the instance. The
// instance has a goroutine of its own. In a turn it calls the handler, which runs in another
// goroutine that ends when the handler waits. So an execution occupies its instance while it
// runs, and not while it sleeps or waits.
//
// # The store
//
// Run opens the store, and so does the first send before Run. One process at a time uses a
// folder. With [Config].Replicate several processes keep the store together: each of them has
// a [Replica], starts executions and runs them. The store is closed before Run returns. Under a Stepper the store is in memory, and its
// time is the time of the Stepper.
//
// # The end
//
// A group of processors with durable inputs finishes when its other inputs are closed and no
// promise of the topology is pending, or one waits for an instance that was given up. If other
// programs use the store, the group stays open until the context of Run ends. Then handlers end
// at their next durable call, and their tasks return to the store: the next process continues
// them.
//
// # Guarantees
//
// A message whose send returned nil is on disk. Its handler is called until its promise is
// settled, in this process or in a later one; finished steps are not repeated. A message
// that cannot be decoded, or that names an instance that does not exist, rejects its promise.
//
// # Limits
//
// At most [ActivationsMax] executions are acquired at once; the others wait on the disk.
package edges
