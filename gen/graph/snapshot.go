package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Snapshot is what is read of a pool.Snapshot, whose JSON a running topology
// writes. The compiler does not import the runtime, so the fields are named here
// again.
type Snapshot struct {
	Time       time.Time          `json:"time"`
	Elapsed    int64              `json:"elapsed"` // nanoseconds
	Workers    int                `json:"workers"`
	Processors []ProcessorFigures `json:"processors"`
	Edges      []EdgeFigures      `json:"edges"`
}

// ProcessorFigures are those of one processor; an external one has no instances.
type ProcessorFigures struct {
	Name      string            `json:"name"`
	Instances []InstanceFigures `json:"instances"`
	Faults    *FaultFigures     `json:"faults"` // nil where the file does not say what becomes of failures
}

// FaultFigures count what went wrong with a processor, and what was done about it.
type FaultFigures struct {
	Restarts                 uint64 `json:"restarts"`
	HealthCheckKills         uint64 `json:"health_check_kills"`
	InputTimeouts            uint64 `json:"input_timeouts"`
	CircuitBreakerRecoveries uint64 `json:"circuit_breaker_recoveries"`
	Abandoned                uint64 `json:"abandoned"`
	DeadLetters              uint64 `json:"dead_letters"`
	Dropped                  uint64 `json:"dropped"`
}

// InstanceFigures are those of one instance.
type InstanceFigures struct {
	Busy     int64  `json:"busy"`   // nanoseconds
	Paused   int64  `json:"paused"` // nanoseconds
	Received uint64 `json:"received"`
}

// EdgeFigures are those of one edge; From is "" for a timer.
type EdgeFigures struct {
	From    string `json:"from"`
	Every   int64  `json:"every"` // of a timer, in nanoseconds
	To      string `json:"to"`
	Message string `json:"message"`
	Len     int    `json:"len"`
	Sent    uint64 `json:"sent"`
	Dropped uint64 `json:"dropped"`
}

// ends are what tells an edge from the others of its topology.
func (e *EdgeFigures) ends() ends { return ends{e.From, time.Duration(e.Every), e.To, e.Message} }

// SnapshotMax bounds a snapshot, which may come from anywhere, in bytes: an instance
// takes about 100. How deep it may be nested, package json bounds.
const SnapshotMax = 16 << 20

// ParseSnapshot reads the JSON of one pool.Snapshot. Fields that it does not know
// are ignored.
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
		return nil, plainly(err)
	}
	if known.Elapsed == nil || known.Processors == nil || known.Edges == nil {
		return nil, errors.New("it lacks elapsed, processors or edges")
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, plainly(err)
	}
	return s, s.check()
}

// plainly says of an error of encoding/json where it is, without Go's types.
func plainly(err error) error {
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

// check refuses what no topology counts.
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
