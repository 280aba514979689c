package graph

import (
	"bytes"
	"encoding/json"
)

// JSON returns the graph as an indented JSON object:
//
//	name    the topology's name
//	nodes   name, type, instances (0 for an external processor and a timer),
//	        blocking, external, timer
//	edges   from, to (indices into nodes), message, reply, note
//
// Durations are nanoseconds. All keys are always present. Later versions may add keys, but never rename one. If the
// file has settings for failures there are also:
//
//	groups  name, strategy, nodes (indices)
//	nodes   isolated (true), group (its name), watch: restart, max_restarts (0:
//	        any number), delay, max_delay, window, timeout, startup_timeout
//	        (nanoseconds, 0: none), on_error, max_attempts (0: not set)
//	edges   dead_letter (true), input_timeout (nanoseconds)
//
// If there are state machines there are also:
//
//	nodes   machine: kind (fsm, raft), log (its folder, "": in memory), sync, group
//	        ("": a single node), peers (their number)
//	edges   implied (true): between a state machine and its controller
//
// If there are durable edges there is also:
//
//	edges   durable (true): a store keeps its messages
//
// If there is a cluster there are also:
//
//	cluster  addresses (raft, etcd, broadcast), nodes: name, address
//	nodes    placement: kind (spread, every-node, node), node ("": any), with (the
//	         first processor that is placed together with this one, or "")
//	edges    crosses (true): messages may go to another node; delivery
//
// A graph with a load also has, under the key load:
//
//	of the graph  time, elapsed (nanoseconds), workers
//	of a node     busy, paused (shares of the time elapsed, the mean over the
//	              instances), busy_max, paused_max (the highest), received,
//	              faults (as in the snapshot, if it has them)
//	of an edge    capacity (of one queue; 0 for a timer and a durable edge), queues, len, sent, dropped
func JSON(g Graph) []byte {
	if g.Nodes == nil {
		g.Nodes = []Node{}
	}
	if g.Edges == nil {
		g.Edges = []Edge{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // keeps types such as <-chan readable
	// Encoding strings, numbers and booleans to memory cannot fail.
	_ = enc.Encode(g)
	return b.Bytes()
}

type jsonNodeLoad struct {
	Busy      float64       `json:"busy"` // shares of the time elapsed
	BusyMax   float64       `json:"busy_max"`
	Paused    float64       `json:"paused"`
	PausedMax float64       `json:"paused_max"`
	Received  uint64        `json:"received"`
	Faults    *FaultFigures `json:"faults,omitempty"`
}

// MarshalJSON writes shares as numbers from 0 to 1.
func (l *NodeLoad) MarshalJSON() ([]byte, error) {
	part := func(thousandths int) float64 { return float64(thousandths) / 1000 }
	return json.Marshal(jsonNodeLoad{part(l.Busy.Mean), part(l.Busy.Max), part(l.Paused.Mean), part(l.Paused.Max), l.Received, l.Faults})
}
