// Package pool has what a program says to a topology that runs, and hears from it.
//
// Options go to the generated New, after what the topology file and the environment say:
//
//	orders, err := New(Processors{}, pool.Workers(4), pool.DrainTimeout(time.Minute))
//
// Run returns the errors below, or a [HandlerError]. The generated Snapshot returns the
// figures of now, and the generated Stepper runs the topology in one goroutine, for
// tests. An [Observer] hears of what the pool does of its own accord.
//
// The types are those of package piper, which runs the instances. Generated code calls
// that package, and nobody else needs it; its documentation says how a topology runs.
package pool
