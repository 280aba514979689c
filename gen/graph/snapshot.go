package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Snapshot has the fields that are read from the JSON of a pool.Snapshot, which a running
// topology writes. The fields are declared here again, because the compiler does not import
// the runtime.
type Snapshot struct {
	Time       time.Time          `json:"time"`
	Elapsed    int64              `json:"elapsed"` // nanoseconds
	Workers    int                `json:"workers"`
	Processors []ProcessorFigures `json:"processors"`
	Edges      []EdgeFigures      `json:"edges"`
}

// ProcessorFigures are the figures of one processor. An external processor has no instances.
type ProcessorFigures struct {
	Name      string            `json:"name"`
	Instances []InstanceFigures `json:"instances"`
	Faults    *FaultFigures     `json:"faults"` // nil: the file has no settings for failures
}

// FaultFigures count the failures of a processor and the reactions to them.
type FaultFigures struct {
	Restarts                 uint64 `json:"restarts"`
	HealthCheckKills         uint64 `json:"health_check_kills"`
	InputTimeouts            uint64 `json:"input_timeouts"`
	CircuitBreakerRecoveries uint64 `json:"circuit_breaker_recoveries"`
	Abandoned                uint64 `json:"abandoned"`
	DeadLetters              uint64 `json:"dead_letters"`
	Dropped                  uint64 `json:"dropped"`
}

// InstanceFigures are the figures of one instance.
type InstanceFigures struct {
	Busy     int64  `json:"busy"`   // nanoseconds
	Paused   int64  `json:"paused"` // nanoseconds
	Received uint64 `json:"received"`
}

// EdgeFigures are the figures of one edge. From is "" for a timer.
type EdgeFigures struct {
	From    string `json:"from"`
	Every   int64  `json:"every"` // period of a timer, in nanoseconds
	To      string `json:"to"`
	Message string `json:"message"`
	Len     int    `json:"len"`
	Sent    uint64 `json:"sent"`
	Dropped uint64 `json:"dropped"`
}

// ends distinguish an edge from the other edges of its topology.
func (e *EdgeFigures) ends() ends { return ends{e.From, time.Duration(e.Every), e.To, e.Message} }

// SnapshotMax bounds the size of a snapshot, which may be untrusted, in bytes. An instance
// takes about 100 bytes. Package json bounds the nesting.
const SnapshotMax = 16 << 20

// ParseSnapshot reads the JSON of one pool.Snapshot. It ignores unknown fields.
func ParseSnapshot(text []byte) (*Snapshot, error) {
	if len(text) > SnapshotMax {
		return nil, fmt.Errorf("it has more than %d MiB", SnapshotMax>>20)
	}
	var s *Snapshot
	var known struct {
		Elapsed    *json.RawMessage
		Processors *json.RawMessage
		Edges      *json.RawMessage
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, positioned(err)
	}
	if known.Elapsed == nil || known.Processors == nil || known.Edges == nil {
		return nil, errors.New("it lacks elapsed, processors or edges")
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, positioned(err)
	}
	return s, s.check()
}

// positioned describes an error of encoding/json by its position, without Go types.
func positioned(err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: %w", e.Offset, err)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return fmt.Errorf("it is a JSON %s", e.Value)
		}
		return fmt.Errorf("byte %d: %s is a JSON %s", e.Offset, e.Field, e.Value)
	}
	return err
}

// check refuses figures that no topology can produce.
func (s *Snapshot) check() error {
	if s.Elapsed < 0 || s.Workers < 0 {
		return errors.New("elapsed or workers is negative")
	}
	for _, p := range s.Processors {
		for i, in := range p.Instances {
			if in.Busy < 0 || in.Paused < 0 {
				return fmt.Errorf("busy or paused of processor %q, instance %d, is negative", p.Name, i)
			}
		}
	}
	for _, e := range s.Edges {
		if e.Len < 0 {
			return fmt.Errorf("len of edge %q is negative", e.ends())
		}
	}
	return nil
}
