package pool

import "github.com/topogen/topogen/runtime/piper"

// Snapshot has the name of a topology and its figures since its start: Processors and Edges by
// index, and the Faults of all processors. The figures of a running topology are read
// one after the other, not at one instant. A Snapshot can be encoded as JSON.
type Snapshot = piper.Snapshot

// ProcessorFigures are the figures of one processor: its Name, its Instances by index,
// and its Faults if the topology file has settings for failures of the processor.
type ProcessorFigures = piper.ProcessorFigures

// InstanceFigures are the figures of one instance: Worker and Moves, the times Busy and
// Paused, Len (the number of queued messages) and Received.
type InstanceFigures = piper.InstanceFigures

// EdgeFigures are the figures of one edge, summed over its links: Sent = Received +
// Dropped + Len.
type EdgeFigures = piper.EdgeFigures

// FaultFigures count the failures of one processor, or of all processors, and the
// reactions to them: Restarts, HealthCheckKills, InputTimeouts,
// CircuitBreakerRecoveries, Abandoned, DeadLetters, Dropped, GaveUp and HoldsLost.
type FaultFigures = piper.FaultFigures
