package spec

import (
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// Text is a string from the topology file, with its position.
type Text struct {
	Value   string
	At      finding.Range
	Pointer string // JSON pointer of the value; for a mapping key, of the value below it
}

// Topology is a checked topology file: every name is valid, both processors of every edge are
// declared, every default is filled in. It is a plain value.
type Topology struct {
	// Partial is true if the file has errors and the parts with errors were left out.
	// Then indices are not final, and no code may be generated.
	Partial bool

	File       string // as given to Parse
	Source     []byte // the file's bytes, for printing findings
	Name       Text
	Package    Text // Value "" when the file leaves it out
	Output     Text // "topology_gen.go" by default
	Messages   []Message
	Processors []Processor // in file order: the index is the ProcessorIndex
	Edges      []Edge      // in file order: the index is the EdgeIndex
	Pool       Pool
	Errors     *Errors // nil when the file leaves it out

	HealthCheckInterval time.Duration // 5s by default
	Groups              []Group       // in file order
	Cluster             *Cluster      // nil when the file leaves it out
	Durable             *Durable      // nil when the file leaves it out
}

// Message is one entry of messages: the Go type of a message name.
type Message struct {
	Name Text
	Type Text // a Go type expression with complete import paths
}

// Processor is one entry of processors.
type Processor struct {
	Name      Text   // the key, as written
	Ident     string // exported camel case of the key: "line-parser" is LineParser
	Type      Text   // "" when left out: Ident in this package; else Name or import/path.Name
	New       Text   // "" when left out
	With      *Value // nil when left out
	Instances int    // 1 by default
	Blocking  bool
	External  bool
	Restart   Restart
	Health    Health
	Isolation Isolation // Goroutine by default
	Memory    int64     // bytes; limit of an isolated process; 0: not in the file
	OnError   OnError
	Placement Placement
	Machine   *Machine      // nil for a processor with a Go type
	At        finding.Range // of the whole entry
	Pointer   string        // "/processors/parser"
}

// Full is what happens to a message for a full queue.
type Full string

const (
	Block      Full = "block"
	DropOldest Full = "drop-oldest"
	DropNewest Full = "drop-newest"
	Fail       Full = "fail"
)

// RouteKind is the way in which an edge selects the instance of its receiver.
type RouteKind string

const (
	RouteNone      RouteKind = ""      // the receiver has one instance, or a timer sends to all
	RouteKey       RouteKind = "key"   // hash of Route.Field modulo instances
	RouteLocal     RouteKind = "local" // index of the sender's instance modulo instances
	RouteID        RouteKind = "id"    // Route.Field is the index
	RouteRange     RouteKind = "range" // Offset to Offset+Count-1
	RouteBroadcast RouteKind = "broadcast"
	RouteNode      RouteKind = "node"   // Route.Field is the name of a node; there as with RouteLocal
	RouteCaller    RouteKind = "caller" // reserved: it has a finding
)

// Route selects the instances that a message goes to.
type Route struct {
	Kind          RouteKind
	Field         Text // for key, id and node: "Account", "Header.Account" or a method's name
	Offset, Count int  // for range
	At            finding.Range
	Pointer       string
}

// Edge is one entry of edges. A timer has Every > 0, From == -1 and no message.
type Edge struct {
	From, To int  // indices into Processors
	FromText Text // the name in "a -> b", with its own position
	ToText   Text
	Every    time.Duration
	Timer    Text // the timer's name; "" for none
	Message  Text // the message's name
	Route    Route
	Capacity int // 1024 by default
	Full     Full
	Reply    Text // the reply message's name; "" for none
	Timeout  time.Duration
	Shared   bool
	Delivery string // AtLeastOnce by default with a cluster; "" without one and for a timer

	InputTimeout time.Duration // 0: none
	ArmAtStart   bool          // arm: start; if false, the first message starts the timeout

	Durable bool   // its messages are kept in the store of Topology.Durable
	ID      Text   // the field or method that identifies an execution; "" for none
	Limit   *Limit // of executions; nil: none

	Implied  bool // an edge between a state machine and its controller; not in the file
	Optional bool // its receiver needs no handler

	At      finding.Range // of the key "a -> b"
	Pointer string        // "/edges/3"
}

// Pool is the pool section, with its defaults filled in.
type Pool struct {
	Workers      int           // 0: GOMAXPROCS
	Batch        int           // 256 by default
	Rebalance    time.Duration // 5s by default; 0: never
	DrainTimeout time.Duration // 10s by default; with a cluster, 10s more than its retry.timeout
	MessageLimit int64         // bytes of a message to or from an isolated process; 0: the default of the runtime
	CycleLimit   int           // messages in one queue within a cycle; 0: chosen by the runtime
}

// Errors is the errors section, with its defaults filled in: the file that keeps the most
// frequent errors of handlers.
type Errors struct {
	Path      Text
	Top       int           // 1000 by default
	Keep      time.Duration // 10m by default
	DumpEvery time.Duration // 1s by default
	Crash     bool
}

// Kind is the kind of a configuration Value.
type Kind int

const (
	Null Kind = iota
	Bool
	Int   // Text is the literal; strconv.ParseInt or ParseUint reads it with base 0
	Float // Text is the literal; strconv.ParseFloat reads it
	String
	List
	Map
)

// Value is a value of the file with its position. Package bind compares the values of with
// with Go types.
type Value struct {
	Kind    Kind
	Text    string   // the scalar, decoded
	Items   []*Value // of a List
	Fields  []Field  // of a Map, in file order
	At      finding.Range
	Pointer string
}

// Field is one key of a Map value.
type Field struct {
	Key   Text
	Value *Value
}
