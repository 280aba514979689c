package plan

import (
	"time"

	"github.com/topogen/topogen/spec"
)

// Plan is a topology with all names, indices, queues and calls.
type Plan struct {
	Name        string // of the topology
	Source      string // base name of the topology file
	Package     string // name of the generated package
	ImportPath  string // of the generated package
	Constraint  string // build constraint of the generated files; "": none
	Output      string // "topology_gen.go"
	PortsFile   string // "topology_ports_gen.go"
	Processors  []Processor
	Edges       []Edge  // edges of the file in order, then implied edges for replies and dead letters
	Links       []Link  // one for each pair of processors that edges join, in order of their first edge
	Groups      []Group // strongly connected components, upstream first
	Pool        Pool
	Errors      *Errors       // nil: errors are not kept
	Supervision *Supervision  // nil: a failure ends the topology
	Wire        string        // hash of the encoding of messages to processes; "": there are none
	FaultLog    time.Duration // interval at which failures are logged; 0: never
	Aliases     []Alias       // aliases for types of state machines
	Collided    []string      // generated names that the file also uses for the user's types; they have findings
	Bound       bool          // every processor binds: topology_gen.go can be emitted
	Cluster     *Cluster      // nil: the topology runs in one process
	Durable     *Durable      // nil: no edge is durable
}

// Errors has the settings for the store of the most frequent handler errors.
type Errors struct {
	Path            string
	Top             int
	Keep, DumpEvery time.Duration
	Crash           bool
}

// Pool has the file's settings for the pool.
type Pool = spec.Pool

// Processor is one processor; its index in Plan.Processors is its ProcessorIndex.
type Processor struct {
	Name      string // as in the file
	Ident     string // Parser
	Local     string // parser: the lower-case form, unique, not a keyword
	Gaps      Gaps
	Type      TypeRef
	Instances int
	Blocking  bool
	External  bool
	Group     int   // index into Plan.Groups
	Incoming  []int // edges to it, including timers, in edge order
	Outgoing  []int // edges from it, including reply edges, in edge order
	Sends     []Send
	Watch     *Watch  // nil: a failure ends the topology
	Inputs    []Input // one for each element of Incoming that is not durable, if the processor can observe its inputs

	Calls // in an outline, set only for state machines

	Machine *Machine // nil: the type is the user's

	Placement *Placement // nil: there is no cluster
}

// Source reports whether the processor has no inputs. Only Ping or Serve
// make such a processor run, and its sends return an error. A state machine is not a source: callers use it directly.
func (p *Processor) Source() bool {
	return !p.External && p.Machine == nil && len(p.Incoming) == 0
}

// Send is one Send method of a sender: Send<Message> (To == -1) along Edges, or
// Send<Message>To<To>.
type Send struct {
	Name    string // SendOrder, SendOrderToPricing
	Message string // the message's name
	Type    TypeRef
	Edges   []int
	Clone   bool   // the message is cloned for all receivers but the last
	Error   bool   // it returns an error (a full: fail edge, a durable edge, or the sender of a source or external)
	Ask     string // the Ask method for the same edge; only for a single edge with reply from an external processor, or a durable one
	Start   string // the method that returns a handle; only for a durable edge

	Proposes bool // Type is a state machine's update; the method makes the proposal from it
	Proposer bool // it sets the field Proposer to its instance, which receives the state machine's answer
}

// Method describes the signature of a method of the processor's type.
type Method struct {
	Name    string
	Context bool
	Durable bool      // the context is a durable.Context
	Message ParamKind // of Receive methods
	Out     OutKind
	Reply   bool // the first result is the reply
	Error   bool // the last result is an error
	// OutMethods lists the sender's methods that the user's interface declares without
	// their error results. For such an interface emit wraps the sender.
	OutMethods []string
	// OutType is the user's interface, if the generated package can name it. For a type
	// literal, OutNames lists its methods instead.
	OutType  *TypeRef
	OutNames []string
}

// Receive is the method that handles the messages of one edge.
type Receive struct {
	Edge int
	Method
}

// ParamKind says whether a method takes its message by value or by pointer.
type ParamKind int

const (
	ByValue ParamKind = iota
	ByPointer
)

// OutKind says whether and how a method takes its sender.
type OutKind int

const (
	NoOut        OutKind = iota
	SenderOut            // *ParserSender
	InterfaceOut         // an interface that the sender satisfies
	AdaptedOut           // an interface that the sender satisfies except for error results
)

// Constructor is the new: function.
type Constructor struct {
	Import   string // "" for this package
	Func     string
	Args     []TypeRef // type arguments of a generic function
	Instance bool      // takes topo.Instance first
	Config   *Literal  // nil: takes none
	Pointer  bool      // returns *T
	Error    bool      // also returns an error
}

// Literal is a Go literal of a configuration.
type Literal struct {
	Type   TypeRef
	Kind   LiteralKind
	Text   string // Go source of a basic literal; strings are quoted here, never copied from the file
	Fields []LiteralField
	Items  []Literal
}

// LiteralKind is the form of a Literal.
type LiteralKind int

const (
	Basic     LiteralKind = iota // Text, converted to Type if that is a named type
	Struct                       // Fields by Name
	SliceLit                     // Items
	MapLit                       // Fields by Key
	PointerTo                    // Items[0]
	NilLit
)

// LiteralField is one field of a struct or entry of a map.
type LiteralField struct {
	Name  string
	Key   *Literal
	Value Literal
}

// RouteKind says how an edge chooses the instances of its receiver.
type RouteKind int

const (
	Single    RouteKind = iota // the receiver has one instance
	Key                        // hash of Access mod instances
	Local                      // the sender's index mod instances
	ID                         // Access is the index
	Range                      // Offset, Count
	Broadcast                  // all
	ToCaller                   // a reply: the instance that sent the request
	ToNode                     // Access is the name of a node; there as for Local. In one process it is Local
)

// KeyKind is the kind of a key's type, which determines its hash function.
type KeyKind int

const (
	KeyString KeyKind = iota
	KeyBytes
	KeyInt  // any signed integer
	KeyUint // any unsigned integer
	KeyBool
)

// Edge is one edge; its index in Plan.Edges is its EdgeIndex.
type Edge struct {
	Ident    string // FeedParserRaw: EdgeFeedParserRaw is its constant; timers: EveryAudit1s, EveryAuditPoll
	From, To int    // From is -1 for a timer
	Message  string // the message's name; "Tick" for a timer, "TickPoll" for a timer with the name poll
	Type     TypeRef
	Every    time.Duration
	Timer    string // the name of a timer, as in the file; "" for none
	Route    RouteKind
	Selector
	Offset     int
	Count      int
	Capacity   int
	Full       string // "block", "drop-oldest", "drop-newest", "fail"
	Reply      string // name of the reply message; "" for none
	ReplyType  TypeRef
	ReplyEdge  int // the implied edge that carries the reply to a processor, or -1
	ReplyOf    int // for an implied reply edge: the edge of the request; else -1
	Timeout    time.Duration
	InCycle    bool // both ends in one group
	Pointerful bool // the message's type holds pointers
	DeadLetter bool // implied: carries messages that could not be handled
	Optional   bool // the receiver needs no handler; without a handler the message is discarded
	CloneAgain bool // each attempt gets a Clone of the message, because another attempt or a dead letter may need it

	Crosses  bool   // with a cluster: messages and replies may go to another node
	Joins    bool   // Ask collects the replies of several instances with the reply's method Aggregate
	Delivery string // "at-least-once", "at-most-once"; "" if the edge does not cross

	Durable *DurableEdge // nil: a queue holds its messages
}

// Selector is the path to the key or id of a message, which chooses the instance. In an
// outline it has only the path from the file.
type Selector struct {
	KeyKind  KeyKind
	Access   []string // selector path of the key or id: fields; the last may be a method
	Method   bool     // the last element of Access is a method
	Pointers bool     // the path has pointers; if one is nil, the key is the zero key
	Nils     []int    // the pointers: the first Nils[i] elements of Access lead to one
}

// Link joins a pair of processors: all edges from From to To that are not durable.
type Link struct {
	From, To  int
	Ident     string // parserToPricing
	Edges     []int
	Sequenced bool // more than one edge: messages carry sequence numbers
	InCycle   bool // both ends in one group
}

// Group is a strongly connected component.
type Group struct {
	Processors []int // in file order
	Cyclic     bool  // more than one processor, or an edge to itself
	Upstream   []int // groups with edges into it
	Downstream []int
	OnlyTimers bool // the only inputs are timers and no member has Ping or Serve: runs until ctx ends
}
