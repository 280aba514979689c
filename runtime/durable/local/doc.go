// Package local is a server of durable promises in memory, without goroutines: everything
// happens in the calls of the user, under a clock that the user passes. It is for tests of
// durable functions in virtual time, and for the Stepper of a topology.
//
//	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
//	server, err := local.New(core.Config{}, func() time.Time { return now })
//	worker, err := durable.NewWorker(durable.Config{Backend: server, Manual: true, …})
//	for worker.Step() || server.Step() {
//	}
//	now, ok = server.Next() // jump to the next timer
//
// # Guarantees
//
// The same calls at the same times give the same results and the same messages. Messages of
// a group go to its processes in turns.
//
// # Limits
//
// Nothing is on disk. Package engine is the server for programs.
package local
