// Package pool has the options, errors, figures and observers of a running topology,
// and the Stepper for tests.
//
// Pass options to the generated function New. An option overrides the environment, and
// the environment overrides the topology file:
//
//	orders, err := New(Processors{}, pool.Workers(4), pool.DrainTimeout(time.Minute))
//
// Run returns one of the errors below, or a [HandlerError]. The generated method
// Snapshot returns current figures. The generated method Stepper runs the topology in
// one goroutine, for tests. An [Observer] is called when an instance moves to another
// worker and when a processor finishes.
//
// The types are aliases of types in package piper, which runs the instances and whose
// documentation explains how. Only generated code needs to import piper.
package pool
