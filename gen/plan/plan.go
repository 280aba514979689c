package plan

import (
	"time"

	"github.com/topogen/topogen/spec"
)

// Plan is a topology with every name, index, queue and call decided.
type Plan struct {
	Name        string // of the topology
	Source      string // base name of the topology file
	Package     string // name of the generated package
	ImportPath  string // of the generated package
	Constraint  string // build constraint of the generated files; "": none
	Output      string // "topology_gen.go"
	PortsFile   string // "topology_ports_gen.go"
	Processors  []Processor
	Edges       []Edge  // declared edges in file order, then the implied ones: of replies, of dead letters
	Links       []Link  // one for each pair of processors that edges join, in order of their first edge
	Groups      []Group // strongly connected components, upstream first
	Pool        Pool
	Errors      *Errors       // nil: errors are not kept
	Supervision *Supervision  // nil: a failure ends the topology
	Wire        string        // hash of how messages cross to processes; "": none does
	FaultLog    time.Duration // how often what went wrong is logged; 0: never
	Aliases     []Alias       // of machines
	Collided    []string      // names of the generated code that the file gives to types of the user's, which has a finding
	Bound       bool          // every processor binds: topology_gen.go can be emitted
}

// Errors says where the top of the handlers' errors is kept.
type Errors struct {
	Path            string
	Top             int
	Keep, DumpEvery time.Duration
	Crash           bool
}

// Pool holds the file's defaults for run time.
type Pool = spec.Pool

// Processor is one processor; its index in Plan.Processors is its ProcessorIndex.
type Processor struct {
	Name      string // as in the file
	Ident     string // Parser
	Local     string // parser: the lower-case form, unique, no keyword
	Gaps      Gaps
	Type      TypeRef
	Instances int
	Blocking  bool
	External  bool
	Group     int   // index into Plan.Groups
	Incoming  []int // edges to it, timers included, in edge order
	Outgoing  []int // edges from it, in edge order, reply edges included
	Sends     []Send
	Watch     *Watch  // nil: a failure ends the topology
	Inputs    []Input // one for each element of Incoming, where the processor can hear what becomes of them

	Calls // of a machine; in an outline zero of others

	Machine *Machine // nil: the type is the user's
}

// Source reports whether nothing comes in: only Ping or Serve make it act, and
// its sends return an error. A machine is none: it acts when somebody calls it.
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
	Error   bool   // it returns an error (a full: fail edge, or the sender of a source or external)
	Ask     string // the Ask method beside it ("" for none); external, single edge with reply

	Proposes bool // it makes the message, of Type, which is a machine's update
	Proposer bool // it fills in the field Proposer: the instance that a machine's answer goes to
}

// Method is how a method of the processor's type is called.
type Method struct {
	Name    string
	Context bool
	Message ParamKind // of Receive methods
	Out     OutKind
	Reply   bool // the first result is the reply
	Error   bool // the last result is an error
	// OutMethods lists the sender's methods that an interface of the user's own
	// names without their error results; emit wraps the sender for it.
	OutMethods []string
	// OutType is such an interface, where the generated package can name it; one
	// that is written out in place has OutNames, its methods, instead.
	OutType  *TypeRef
	OutNames []string
}

// Receive is the method that takes the messages of one edge.
type Receive struct {
	Edge int
	Method
}

// ParamKind is how a message is handed over.
type ParamKind int

const (
	ByValue ParamKind = iota
	ByPointer
)

// OutKind is whether a method takes its sender, and how.
type OutKind int

const (
	NoOut        OutKind = iota
	SenderOut            // *ParserSender
	InterfaceOut         // an interface that the sender satisfies
	AdaptedOut           // an interface that the sender satisfies but for error results
)

// Constructor is the new: function.
type Constructor struct {
	Import   string // "" for this package
	Func     string
	Args     []TypeRef // type arguments of a generic function
	Instance bool      // takes topo.Instance first
	Config   *Literal  // nil: takes none
	Pointer  bool      // returns *T
	Error    bool      // returns an error too
}

// Literal is a Go literal of a configuration.
type Literal struct {
	Type   TypeRef
	Kind   LiteralKind
	Text   string // Go source of a basic literal, made by this package: quoted, never copied
	Fields []LiteralField
	Items  []Literal
}

// LiteralKind is the form of a Literal.
type LiteralKind int

const (
	Basic     LiteralKind = iota // Text, converted to Type where that is a named type
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
	ToCaller                   // a reply: the instance that asked
)

// KeyKind is how a key or id is turned into a number.
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
	Message  string // the message's name; "Tick" for a timer, "TickPoll" for one called poll
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
	ReplyEdge  int // the implied edge that carries the reply to a processor; -1
	ReplyOf    int // for an implied reply edge: the edge that asks; -1
	Timeout    time.Duration
	InCycle    bool // both ends in one group
	Pointerful bool // the message's type holds pointers
	DeadLetter bool // implied: carries messages that could not be handled
	Optional   bool // the receiver needs no handler: without one the message is forgotten
	CloneAgain bool // each attempt at the message gets a Clone of it
}

// Selector is how a message gives the key or id of the instance that it goes to. In an
// outline it has no more than what the file says.
type Selector struct {
	KeyKind  KeyKind
	Access   []string // selector path of the key or id: fields; the last may be a method
	Method   bool     // the last element of Access is a method
	Pointers bool     // the key sits behind pointers that may be nil: it then is that of the zero value
	Nils     []int    // where: the message's expression with the first Nils[i] elements of Access is a pointer
}

// Link joins a pair of processors: all edges from From to To.
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
	OnlyTimers bool // nothing but timers comes in and no member has Ping or Serve: runs until ctx ends
}
