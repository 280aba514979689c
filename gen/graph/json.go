package graph

import (
	"bytes"
	"encoding/json"
	"time"
)

type jsonGraph struct {
	Name  string     `json:"name"`
	Load  *jsonLoad  `json:"load,omitempty"`
	Nodes []jsonNode `json:"nodes"`
	Edges []jsonEdge `json:"edges"`

	Groups []jsonGroup `json:"groups,omitempty"`
}

type jsonGroup struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"`
	Nodes    []int  `json:"nodes"`
}

type jsonNode struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Instances int    `json:"instances"`
	Blocking  bool   `json:"blocking"`
	External  bool   `json:"external"`
	Timer     bool   `json:"timer"`

	Isolated bool          `json:"isolated,omitempty"`
	Group    string        `json:"group,omitempty"`
	Watch    *jsonWatch    `json:"watch,omitempty"`
	Machine  *jsonMachine  `json:"machine,omitempty"`
	Load     *jsonNodeLoad `json:"load,omitempty"`
}

type jsonWatch struct {
	Restart     string        `json:"restart"`
	MaxRestarts int           `json:"max_restarts"`
	Delay       time.Duration `json:"delay"` // nanoseconds, as below
	MaxDelay    time.Duration `json:"max_delay"`
	Window      time.Duration `json:"window"`
	Timeout     time.Duration `json:"timeout"`
	Startup     time.Duration `json:"startup_timeout"`
	OnError     string        `json:"on_error"`
	MaxAttempts int           `json:"max_attempts"`
}

type jsonMachine struct {
	Kind  string `json:"kind"`
	Log   string `json:"log"`
	Sync  string `json:"sync"`
	Group string `json:"group"`
	Peers int    `json:"peers"`
}

type jsonEdge struct {
	From    int    `json:"from"`
	To      int    `json:"to"`
	Message string `json:"message"`
	Reply   string `json:"reply"`
	Note    string `json:"note"`

	Implied      bool          `json:"implied,omitempty"`
	DeadLetter   bool          `json:"dead_letter,omitempty"`
	InputTimeout time.Duration `json:"input_timeout,omitempty"` // nanoseconds

	Load *jsonEdgeLoad `json:"load,omitempty"`
}

type jsonLoad struct {
	Time    time.Time     `json:"time"`
	Elapsed time.Duration `json:"elapsed"` // nanoseconds
	Workers int           `json:"workers"`
}

type jsonNodeLoad struct {
	Busy      float64 `json:"busy"` // shares of the time elapsed
	BusyMax   float64 `json:"busy_max"`
	Paused    float64 `json:"paused"`
	PausedMax float64 `json:"paused_max"`
	Received  uint64  `json:"received"`

	Faults *FaultFigures `json:"faults,omitempty"`
}

type jsonEdgeLoad struct {
	Capacity int    `json:"capacity"`
	Queues   int    `json:"queues"`
	Len      int    `json:"len"`
	Sent     uint64 `json:"sent"`
	Dropped  uint64 `json:"dropped"`
}

// JSON returns the graph as an indented JSON object:
//
//	name    the topology's name
//	nodes   name, type, instances (0 for an external processor and a timer),
//	        blocking, external, timer
//	edges   from, to (indices into nodes), message, reply, note
//
// All keys are always there. Names stay; later versions may add keys. Where the
// file says what becomes of failures there are also:
//
//	groups  name, strategy, nodes (indices)
//	nodes   isolated (true), group (its name), watch: restart, max_restarts (0:
//	        any number), delay, max_delay, window, timeout, startup_timeout
//	        (nanoseconds, 0: none), on_error, max_attempts (0: not said)
//	edges   dead_letter (true), input_timeout (nanoseconds)
//
// Where there are machines of the runtime there are also:
//
//	nodes   machine: kind (fsm, raft), log (its folder, "": in memory), sync, group
//	        ("": one node alone), peers (how many)
//	edges   implied (true): between a machine and its controller
//
// A graph with a load has also, under the key load:
//
//	of the graph  time, elapsed (nanoseconds), workers
//	of a node     busy, paused (shares of the time elapsed, the mean over the
//	              instances), busy_max, paused_max (the highest), received,
//	              faults (those of the snapshot, where it has some)
//	of an edge    capacity (of one queue; 0 for a timer), queues, len, sent, dropped
func JSON(g Graph) []byte {
	// The types mirror Graph so that renaming a field there renames nothing here.
	out := jsonGraph{Name: g.Name, Nodes: []jsonNode{}, Edges: []jsonEdge{}}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, jsonNode{
			Name: n.Name, Type: n.Type, Instances: n.Instances,
			Blocking: n.Blocking, External: n.External, Timer: n.Timer,
			Isolated: n.Isolated, Group: n.Group, Watch: (*jsonWatch)(n.Watch), Machine: (*jsonMachine)(n.Machine), Load: n.Load.json(),
		})
	}
	for _, group := range g.Groups {
		out.Groups = append(out.Groups, jsonGroup(group))
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, jsonEdge{
			From: e.From, To: e.To, Message: e.Message, Reply: e.Reply, Note: e.Note,
			Implied: e.Implied, DeadLetter: e.DeadLetter, InputTimeout: e.InputTimeout, Load: (*jsonEdgeLoad)(e.Load),
		})
	}
	if g.Load != nil {
		out.Load = &jsonLoad{g.Load.Until, g.Load.Elapsed, g.Load.Workers}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // a type such as <-chan is to stay readable
	// Encoding strings, numbers and booleans into memory cannot fail.
	_ = enc.Encode(out)
	return b.Bytes()
}

func (l *NodeLoad) json() *jsonNodeLoad {
	if l == nil {
		return nil
	}
	part := func(thousandths int) float64 { return float64(thousandths) / 1000 }
	return &jsonNodeLoad{part(l.Busy.Mean), part(l.Busy.Max), part(l.Paused.Mean), part(l.Paused.Max), l.Received, l.Faults}
}
