// Package core is the state machine of durable promises: promises, tasks, callbacks,
// listeners and schedules, as a function of (tables, operation, time). It has no clock,
// no goroutine and no I/O.
package core
