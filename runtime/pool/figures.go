package pool

import "github.com/topogen/topogen/runtime/piper"

// Snapshot is what a topology has done so far: its Processors and Edges by index, and
// the Faults of all. Figures of a running topology are taken one after the other, not
// at one instant. They are ready to be printed as JSON.
type Snapshot = piper.Snapshot

// ProcessorFigures are the figures of one processor: its Name, its Instances by index,
// and its Faults where the file says what becomes of failures.
type ProcessorFigures = piper.ProcessorFigures

// InstanceFigures are the figures of one instance: Worker and Moves, the time that it
// was Busy and Paused, Len, the messages that wait for it, and Received.
type InstanceFigures = piper.InstanceFigures

// EdgeFigures are the figures of one edge, over all pairs of instances:
// Sent = Received + Dropped + Len.
type EdgeFigures = piper.EdgeFigures

// FaultFigures count what went wrong with a processor, or with all of them, and what
// was done about it, since the beginning: Restarts, HealthCheckKills, InputTimeouts,
// CircuitBreakerRecoveries, Abandoned, DeadLetters, Dropped, GaveUp and HoldsLost.
type FaultFigures = piper.FaultFigures
