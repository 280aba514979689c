package finding

// catalogueGo explains the findings about Go code, which package gen makes.
var catalogueGo = []Explanation{
	{
		Code:   ProcessorType,
		Title:  "the type of a processor is not found",
		Reason: "The package has no type of that name. Without a type: key it is the processor's name in exported camel case; topogen build --scaffold writes a stub.",
		Wrong:  "processors:\n  parser: {}          # and no type Parser in the package\n",
		Right:  "type Parser struct{}\n",
	},
	{
		Code:   MethodMissing,
		Title:  "a method is missing",
		Reason: "For each edge into a processor its type has a method Receive<Message> or Receive<Message>From<From>, and ReceiveTick for a timer, or ReceiveTickPoll for a timer that is called poll. Where several embedded types have the method, Go promotes none of them. topogen build --scaffold writes a stub.",
		Wrong:  "edges:\n  - feed -> parser: Raw      # and Parser has no ReceiveRaw\n",
		Right:  "func (p *Parser) ReceiveRaw(m Raw, out *ParserSender) error {\n\treturn nil\n}\n",
	},
	{
		Code:   MethodShape,
		Title:  "a method of the wrong shape",
		Reason: "The parameters and results of a method that topogen calls are fixed, but for what may be left out: a context first, the message as value or pointer, the sender last; a reply and an error as results.",
		Wrong:  "func (p *Parser) ReceiveRaw(out *ParserSender, m Raw) {}\n",
		Right:  "func (p *Parser) ReceiveRaw(m Raw, out *ParserSender) {}\n",
	},
	{
		Code:   KeyField,
		Title:  "the field of a key is not found",
		Reason: "The message has no field and no method without arguments of that name; in another package only exported ones count.",
		Wrong:  "edges:\n  - parser -> pricing: {message: Order, key: Acount}\n",
		Right:  "edges:\n  - parser -> pricing: {message: Order, key: Account}\n",
	},
	{
		Code:   KeyType,
		Title:  "a field that cannot be a key",
		Reason: "A key is a string, a []byte, a bool or an integer: its hash is the same on every machine and in every release. An id is an integer.",
		Wrong:  "type Order struct{ Price float64 }     // key: Price\n",
		Right:  "type Order struct{ Account string }    // key: Account\n",
	},
	{
		Code:   MessageType,
		Title:  "the type of a message is not found",
		Reason: "A message, and the state and the update of a machine, name a type of this package, or a key under messages, whose value names the type with its import path. topogen build --scaffold declares it, with the fields that keys name. It is also a finding if the handlers of a message take another type than messages says.",
		Wrong:  "edges:\n  - feed -> parser: Raw      # and no type Raw in the package\n",
		Right:  "type Raw struct{ Line string }\n",
	},
	{
		Code:  SharedMemory,
		Title: "several receivers would share memory",
		Reason: "A message belongs to its receiver. This one holds pointers, slices or maps and goes to more than one, which would read and write the same memory. " +
			"Give its type a method Clone() M, or say shared: true on the edges if all receivers only read it.",
		Wrong: "edges:\n  - parser -> pricing: Order      # Order holds a slice\n  - parser -> audit: Order\n",
		Right: "edges:\n  - parser -> pricing: {message: Order, shared: true}\n  - parser -> audit: {message: Order, shared: true}\n",
	},
	{
		Code:   Constructor,
		Title:  "the new function is not found or has the wrong shape",
		Reason: "The function stands in the package of the type and returns T or *T, and perhaps an error. Its parameters may be topo.Instance first and a configuration last. topogen build --scaffold writes a stub.",
		Wrong:  "func NewFeed() string { return \"\" }\n",
		Right:  "func NewFeed(c FeedConfig) (*Feed, error) { return &Feed{}, nil }\n",
	},
	{
		Code:   Config,
		Title:  "a configuration value does not fit",
		Reason: "What stands under with is checked against the last parameter of the new function, a struct: by the yaml tags of its fields, else by their names without regard to case.",
		Wrong:  "type FeedConfig struct{ Dir string }     // with: {dir: 5}\n",
		Right:  "type FeedConfig struct{ Dir string }     // with: {dir: ./in}\n",
	},
	{
		Code:   GoSyntax,
		Title:  "a Go file does not parse",
		Reason: "A Go file of the package has a syntax error, so that its types and methods are not known. The first error of each file is reported. Nothing is written until all parse.",
	},
	{
		Code:   GoType,
		Title:  "a type error in Go code",
		Reason: "The package, or one of yours that it imports, does not compile, for a reason other than what is still to be generated. build still writes its output, which may be what repairs the package, and exits with 1, as check does.",
	},
	{
		Code:   NameTaken,
		Title:  "a generated name exists in the package",
		Reason: "The package declares a name that the generated code declares too. Rename yours, or the processor or message that it is made of. Tests and files for other systems or tags count too, so that the output is the same for all of them. Two topologies in one package always collide: move one of them, with its Go types, into a folder of its own.",
		Wrong:  "type ParserSender struct{}     // a name of the generated code for processor parser\n",
		Right:  "type LineSender struct{}\n",
	},
	{
		Code:   MethodsExclude,
		Title:  "methods that exclude each other",
		Reason: "A processor has Ping or Serve, not both, and Serve only where it has no inputs: it runs in a goroutine of its own, and only one goroutine is in an instance at any time.",
		Wrong:  "func (f *Feed) Ping(out *FeedSender) error                        { return topo.Idle }\nfunc (f *Feed) Serve(ctx context.Context, out *FeedSender) error { return nil }\n",
		Right:  "func (f *Feed) Serve(ctx context.Context, out *FeedSender) error { return nil }\n",
	},
	{
		Code:  PackageNotLoaded,
		Title: "a package cannot be loaded",
		Reason: "A package that the topology names is not found, or the go command cannot load it; the message says what the go command says. Is it in go.mod, and is the path spelled as in an import? " +
			"Or the package of the topology cannot be read: its folder holds two packages, no go.mod encloses it, build constraints leave out all its files, or a type in it is made of so many others that no type checker would come to an end.",
	},
	{
		Code:   SenderUnfit,
		Title:  "the sender does not fit the parameter out",
		Reason: "Where the parameter out is an interface, the processor's sender has its methods. It has those of declared edges alone.",
		Wrong:  "func (p *Parser) ReceiveRaw(m Raw, out interface{ SendInvoice(Invoice) })     // no such edge\n",
		Right:  "func (p *Parser) ReceiveRaw(m Raw, out interface{ SendOrder(Order) })         // parser -> pricing: Order\n",
	},
	{
		Code:   ReplyType,
		Title:  "the reply has another type",
		Reason: "The edge has a reply, and the handler's first result is another type, or there is none; or the handler returns a reply and its edge has none.",
		Wrong:  "func (p *Pricing) ReceiveQuote(m Quote) error          // reply: Price\n",
		Right:  "func (p *Pricing) ReceiveQuote(m Quote) (Price, error)\n",
	},
	{
		Code:  NotEncodable,
		Title: "a message that cannot cross to a process",
		Reason: "With isolation: process messages are written as bytes. A channel, a function or an interface means nothing in another process, and fields of other packages that are not exported are out of reach. " +
			"Leave such a field out with the tag topo:\"-\", or give its type MarshalBinary and UnmarshalBinary. Dead letters, which hold messages of any type, are handled in this process.",
		Wrong: "type Order struct {\n\tAccount string\n\tDone    chan error\n}\n",
		Right: "type Order struct {\n\tAccount string\n\tDone    chan error `topo:\"-\"`\n}\n",
	},
	{
		Code:  FieldNumbers,
		Title: "the file of field numbers is not in order",
		Reason: "topology.wire.yml holds the number of each field that crosses to a process; with another one, what was written before would be misread. So its lines stay as topogen wrote them, those of fields that are gone too. " +
			"Where two branches have given numbers, keep the lines of both, give each new field a number of its own, and remove the line with the sum, which is written anew.",
		Wrong: "Order: sum 2df8a6a5\nOrder.Account: 1\nOrder.Cents: 3      # was 2\n",
		Right: "Order: sum 2df8a6a5\nOrder.Account: 1\nOrder.Cents: 2\n",
	},
	{
		Code:  UpdateUnfit,
		Title: "an update that cannot change its state",
		Reason: "The update type of a machine, or a pointer to it, has the method Update(*State) error, or with \"result: Receipt\" in the file the method Update(*State) (Receipt, error). The same with an fsm.Entry behind the state is UpdateAt, and is called in its place. " +
			"Update depends on the update and the state alone, so that it comes to the same on every host, and changes nothing where it returns an error. With \"revert: true\" the controller may add updates and have them undone; then there is the method Revert(*State) error, too. " +
			"topogen build --scaffold writes stubs.",
		Wrong: "func (t *Transfer) Update(a Accounts) {}\n",
		Right: "func (t *Transfer) Update(a *Accounts) error { a.Cents += t.Cents; return nil }\n",
	},
	{
		Code:  NotLogged,
		Title: "a state, an update or a result that cannot be kept in a log",
		Reason: "A machine with a log writes its updates, what they return, and now and then its state, as bytes. A channel, a function or an interface means nothing when it is read again, and fields of other packages that are not exported are out of reach. " +
			"Leave such a field out with the tag topo:\"-\", if it can be made anew from the others, or give its type MarshalBinary and UnmarshalBinary.",
		Wrong: "type Accounts struct {\n\tCents map[string]int64\n\tlock  chan struct{}\n}\n",
		Right: "type Accounts struct {\n\tCents map[string]int64\n}\n",
	},
	{
		Code:  OutlivesCall,
		Title: "a handler keeps what is valid only during its call",
		Reason: "A message pointer, the sender and the context are valid until the handler returns, and the sender works on the handler's goroutine only. Afterwards the pointer has the values of another message, and a message that is sent is lost. " +
			"Store a copy of the message, send in the handler itself, and wait for goroutines that use the message or the context. build prints this as a warning and writes its output; check fails.",
		Wrong: "func (s *Store) ReceiveOrder(m *Order, out *StoreSender) {\n\ts.last = m                               // the pointer\n\tgo func() { out.SendReceipt(s.print()) }() // another goroutine\n}\n",
		Right: "func (s *Store) ReceiveOrder(m *Order, out *StoreSender) {\n\ts.last = *m // a copy\n\tout.SendReceipt(s.print())\n}\n",
	},
	{
		Code:  ForeignLifecycle,
		Title: "a lifecycle method of another package",
		Reason: "The processor's type embeds a type of another package that has a method Init, Ping, Serve, Finish or Close. Go promotes the method, and the runtime would call it: " +
			"with an embedded *sql.DB a processor would be a source that pings the database for ever. Hold the value in a field with a name. To have the method called, declare it on the processor's type.",
		Wrong: "type Store struct {\n\t*sql.DB\n}\n",
		Right: "type Store struct {\n\tdb *sql.DB\n}\n\nfunc (s *Store) Close() error { return s.db.Close() }\n",
	},
	{
		Code:  NotCopyable,
		Title: "a message that must not be copied",
		Reason: "The message has a sync.Mutex or another lock, at any depth. It is copied into the queue and out of it, and a copy of a lock does not exclude anybody; go vet reports each place. " +
			"A message belongs to its receiver, so it seldom needs a lock. Where it does, hold the lock by a pointer, or send a pointer.",
		Wrong: "type Order struct {\n\tmu    sync.Mutex\n\tCents int\n}\n",
		Right: "type Order struct {\n\tCents int\n}\n",
	},
}

// catalogueGoWarnings explains what package gen warns of.
var catalogueGoWarnings = []Explanation{
	{
		Code:   NeverCalled,
		Title:  "a handler that is never called",
		Reason: "The method is named as a handler is, and no edge to the processor carries such a message: its name is misspelt, or the edge is gone. Or each edge has a handler with a longer name, which wins. Or the method hears what becomes of inputs, as InputClosed does, and the file says nothing of that.",
		Wrong:  "func (p *Parser) ReceiveRaws(m Raw) {}     // feed -> parser: Raw\n",
		Right:  "func (p *Parser) ReceiveRaw(m Raw) {}\n",
	},
}
