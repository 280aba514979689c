package emit

import (
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
)

func fsm(name Ident) *jen.Statement  { return jen.Qual(plan.FSM, string(name)) }
func raft(name Ident) *jen.Statement { return jen.Qual(plan.Raft, string(name)) }

// aliases writes aliases for the types of a state machine and of its messages.
//
//	type (
//		LedgerProposal    = fsm.Proposal[Transfer]
//		LedgerUpdates     = fsm.Updates[Transfer]
//		…
//	)
func (p *part) aliases(q *processor) {
	m := q.Machine
	switch {
	case m.State != "":
		p.doc("%s is a state machine: %s is its state, %s its update.", q.ident, m.State, m.Update)
	default:
		p.doc("%s is a member of a raft group, which agrees on a log.", q.ident)
	}
	var messages, events []code
	for _, a := range p.plan.Aliases {
		if a.Processor != q.index {
			continue
		}
		alias := id(mustIdent(a.Name)).Op("=").Add(typeCode(a.Type))
		switch a.Name {
		case q.Ident:
			p.add(jen.Type().Add(alias))
		case q.Ident + "Session":
			p.doc("%s proposes updates to %s. An update that is proposed again is applied only once.", a.Name, q.Name)
			p.add(jen.Type().Add(alias))
		default:
			if slices.Contains(m.Events, strings.TrimPrefix(a.Name, q.Ident)) {
				events = append(events, alias)
				continue
			}
			messages = append(messages, alias)
		}
	}
	if len(events) > 0 {
		p.doc("Events that %s sends.", q.Name)
		p.add(jen.Type().Defs(events...))
	}
	if len(messages) > 0 {
		p.doc("Messages between %s and its controller, %s.", q.Name, p.processors[m.Controller].Name)
		p.add(jen.Type().Defs(messages...))
	}
}

// propose writes the method that proposes an update.
//
//	func (s *BankSender) ProposeToLedger(m Transfer) {
//		s.SendLedgerProposalToLedger(LedgerProposal{Update: m})
//	}
func (p *part) propose(q *processor, sent *send) {
	s, m := p.v("s"), p.v("m")
	machine := sent.edges[0].to
	proposal := id(mustIdent(sent.Message))
	call := sel(s, mustIdent("Send"+sent.Message+"To"+machine.Ident)).Call(proposal.Values(key("Update", id(m))))
	var results []code
	if sent.Error {
		call, results = jen.Return(call), []code{jen.Error()}
	}
	p.doc("%s proposes an update to %s. The outcome comes back to this instance as a %sOutcome.", sent.name, machine.Name, machine.Ident)
	p.short(s, q.sender, sent.name, []code{param(m, typeCode(sent.Type))}, results, call)
}

// machine writes the methods that connect the runtime's state machine with the pool.
//
//	func (x *ledgerInstance) Init(ctx context.Context) error { return x.p.Start(ctx, &x.unit) }
//
//	func (x *ledgerInstance) Woken() error { return x.p.Answer(x) }
//
//	func (x *ledgerInstance) Outcome(m fsm.Outcome[Transfer, int64]) { x.out.SendLedgerOutcome(m) }
func (p *part) machine(q *processor) {
	x, ctx, m := p.v("x"), p.v("ctx"), p.v("m")
	p.short(x, q.instance, "Init", []code{param(ctx, jen.Qual("context", "Context"))}, []code{jen.Error()},
		jen.Return(sel(x, "p", "Start").Call(id(ctx), ref(x, "unit"))))
	p.doc("Woken sends the answers of %s.", q.Name)
	p.short(x, q.instance, "Woken", nil, []code{jen.Error()}, jen.Return(sel(x, "p", "Answer").Call(id(x))))
	for _, a := range q.Machine.Answers {
		name := mustIdent(a.Name)
		if a.Send == "" {
			p.add(jen.Func().Params(ptr(q.instance)).Add(id(name)).Params(typeCode(a.Type)).Add(oneLine(jen.Empty())))
			continue
		}
		p.short(x, q.instance, name, []code{param(m, typeCode(a.Type))}, nil, sel(x, "out", mustIdent(a.Send)).Call(id(m)))
	}
}

// events writes the calls by which a state machine sends events to other processors.
//
//	x.p.OnApplied(x.unit.Index(), func(m LedgerApplied) error {
//		x.out.SendLedgerApplied(m)
//		return nil
//	})
//
//	x.p.OnLeadership(x.unit.Index(), x.out.SendLedgerLeadership)
func (p *part) events(q *processor) (calls []code) {
	x, m := p.v("x"), p.v("m")
	for _, event := range q.Machine.Events {
		sent := q.sends[slices.IndexFunc(q.sends, func(s *send) bool { return s.Message == q.Ident+event })]
		how := sel(x, "out", sent.name)
		if event == "Applied" && !sent.Error {
			how = jen.Func().Params(param(m, typeCode(sent.Type))).Error().Block(sel(x, "out", sent.name).Call(id(m)), jen.Return(jen.Nil()))
		}
		calls = append(calls, sel(x, "p", mustIdent("On"+event)).Call(sel(x, "unit", "Index").Call(), how))
	}
	return calls
}

// machineConstructor writes the function that makes a state machine.
//
//	func NewLedger(i int, opts ...func(*raft.Config)) (*Ledger, error) {
//		c := raft.Config{
//			Topology:      "machinegroups",
//			…
//			Forward:         true,
//		}
//		…
//		return raft.New(c, fsm.Definition[Accounts, Transfer, int64]{
//			…
//		})
//	}
func (p *part) machineConstructor(q *processor) {
	m := q.Machine
	name, c, o, opts, err := mustIdent(q.Constructor()), p.v("c"), p.v("o"), p.v("opts"), p.v("err")
	params, which := []code{id(opts).Op("...").Func().Params(pointer(raft("Config")))}, ""
	if q.InstancesType() != "" {
		params, which = append([]code{param(p.v("i"), jen.Int())}, params...), "an instance of "
	}
	if !m.Kept() {
		p.doc("%s makes %s with a zero state.", name, q.Name)
		p.add(jen.Func().Add(id(name)).Params().Add(ptr(q.ident)).Block(jen.Return(fsm("NewProcessor").Call(p.definition(m)))))
		return
	}
	make := raft("NewProcessor").Call(id(c))
	if m.State != "" {
		make = raft("New").Call(id(c), p.definition(m))
	}
	p.doc("%s makes %s%s as %s describes it. Environment variables override the file (see raft.Config), and opts override both, for example to set the node.", name, which, q.Name, p.plan.Source)
	p.add(jen.Func().Add(id(name)).Params(params...).Params(ptr(q.ident), jen.Error()).Block(
		define(c, raft("Config").Add(lines(p.raftConfig(q)))),
		jen.If(define(err, sel(c, "FromEnvironment").Call()), id(err).Op("!=").Nil()).Block(jen.Return(jen.Nil(), id(err))),
		jen.For(jen.List(jen.Id("_"), id(o)).Op(":=").Range().Add(id(opts))).Block(id(o).Call(ref(c))),
		jen.Return(make),
	))
}

// definition writes the definition of a state machine.
//
//	return raft.New(c, fsm.Definition[Accounts, Transfer, int64]{
//		Update:      (*Transfer).Update,
//		StateCodec:  fsm.Codec[Accounts]{Append: appendAccounts, Consume: consumeAccounts, Parts: []string{"Cents"}},
//		UpdateCodec: fsm.Codec[Transfer]{Append: appendTransfer, Consume: consumeTransfer},
//		ResultCodec: fsm.Codec[int64]{Append: appendInt64, Consume: consumeInt64},
//		…
//		Errors: []fsm.Sentinel{
//			{Name: "ErrNobody", Err: ErrNobody},
//		},
//	})
func (p *part) definition(m *plan.Machine) code {
	name, update := p.update(m)
	f := fields{key(string(name), update)}
	f.when(m.Revert, "Revert", jen.Parens(pointer(typeCode(m.UpdateType))).Dot("Revert"))
	if m.Kept() {
		f = append(f, key("StateCodec", p.stateCodec(m)), key("UpdateCodec", p.codec(m.Update, m.UpdateType)))
		if m.Result != "" {
			f = append(f, key("ResultCodec", p.codec(m.Result, m.ResultType)))
		}
		f = append(f, key("Description", jen.Id("`"+p.boundary.describe(m)+"`")))
		var errors []code
		for _, name := range m.Errors {
			errors = append(errors, jen.Values(key("Name", jen.Lit(name)), key("Err", qualified(m.UpdateType.Import, name))))
		}
		f.when(len(errors) > 0, "Errors", jen.Index().Add(fsm("Sentinel")).Add(lines(errors)))
	}
	return fsm("Definition").Types(typeCode(m.StateType), typeCode(m.UpdateType), typeCode(m.ResultType)).Add(lines(f))
}

// describe describes the encoding of a state machine's values.
func (b *boundary) describe(m *plan.Machine) string {
	parts := []wire.Part{{Kind: "state", Root: m.State}, {Kind: "update", Root: m.Update}}
	if m.Result != "" {
		parts = append(parts, wire.Part{Kind: "result", Root: m.Result})
	}
	return b.schema.Describe(parts...)
}

// update is the method that changes the state: its name, and the function for the definition.
func (p *part) update(m *plan.Machine) (name Ident, update code) {
	u, s, e := p.v("u"), p.v("s"), p.v("e")
	params, args := []code{param(u, pointer(typeCode(m.UpdateType))), param(s, pointer(typeCode(m.StateType)))}, []code{id(s)}
	name = "Update"
	if m.At {
		name, params, args = "UpdateAt", append(params, param(e, fsm("Entry"))), append(args, id(e))
	}
	if m.Result != "" {
		return name, jen.Parens(pointer(typeCode(m.UpdateType))).Dot(string(name))
	}
	return name, jen.Func().Params(params...).Params(jen.Struct(), jen.Error()).Block(
		jen.Return(jen.Struct().Values(), sel(u, name).Call(args...)))
}

// codec is the codec of a type; more are additional fields.
func (p *part) codec(name string, t plan.TypeRef, more ...code) code {
	return p.codecOf(p.boundary.codecs[name], t, more...)
}

// codecOf is like codec, with the functions of the given codec.
func (p *part) codecOf(codec wire.Codec, t plan.TypeRef, more ...code) code {
	appends := id(mustIdent(codec.Append))
	if codec.Bounded {
		b, m := p.v("b"), p.v("m")
		appends = jen.Func().Params(param(b, jen.Op("[]byte")), param(m, pointer(typeCode(t)))).Params(jen.Op("[]byte"), jen.Error()).Block(
			jen.Return(id(mustIdent(codec.Append)).Call(id(b), id(m), jen.Qual(wirePath, "NoLimit"))))
	}
	return fsm("Codec").Types(typeCode(t)).Values(append([]code{key("Append", appends), key("Consume", id(mustIdent(codec.Consume)))}, more...)...)
}

// stateCodec is the codec of the state. It lists parts, because a state may be too large to be
// written at once.
func (p *part) stateCodec(m *plan.Machine) code {
	var names []code
	for _, name := range p.boundary.schema.Parts(m.State) {
		names = append(names, jen.Lit(name))
	}
	codec := *p.boundary.codecs[m.State].State
	if len(names) == 0 {
		return p.codecOf(codec, m.StateType)
	}
	return p.codecOf(codec, m.StateType, key("Parts", jen.Index().String().Values(names...)))
}

// raftConfig is the configuration from the file for a state machine with a log.
func (p *part) raftConfig(q *processor) fields {
	m, group := q.Machine, q.Name
	if m.Raft != nil {
		group = m.Raft.Group
	}
	f := fields{key("Topology", jen.Lit(p.plan.Name)), key("Group", jen.Lit(group))}
	f.when(q.InstancesType() != "", "Instance", id(p.v("i")))
	f.when(q.InstancesType() != "", "Instances", jen.Lit(q.Instances))
	if m.Log != nil {
		sync := map[string]string{"always": "Always", "interval": "Interval", "none": "None"}[m.Log.Sync]
		f = append(f, key("Dir", jen.Lit(m.Log.Path)), key("Sync", jen.Qual(walPath, sync)))
		f.when(m.Log.Sync == "interval", "SyncInterval", duration(m.Log.Interval))
		f = append(f, key("SnapshotEvery", jen.Lit(m.Log.SnapshotEvery)))
	}
	r := m.Raft
	if r == nil {
		return f
	}
	var peers []code
	for _, peer := range r.Peers {
		peers = append(peers, jen.Lit(peer.Name).Op(":").Lit(peer.Address))
	}
	f = append(f, key("Peers", jen.Map(jen.String()).String().Add(lines(peers))),
		key("ElectionTimeout", duration(r.ElectionTimeout)), key("Heartbeat", duration(r.Heartbeat)))
	f.when(m.State != "", "Forward", jen.Lit(r.Forward))
	f.when(r.Cert != "", "TLSCert", jen.Lit(r.Cert))
	f.when(r.Key != "", "TLSKey", jen.Lit(r.Key))
	f.when(r.CA != "", "TLSCA", jen.Lit(r.CA))
	f.when(r.TrustDomain != "", "TrustDomain", jen.Lit(r.TrustDomain))
	if c := p.plan.Cluster; c != nil && !r.ByController {
		var files fields
		files.when(c.Cert != "", "Cert", jen.Lit(c.Cert))
		files.when(c.Key != "", "Key", jen.Lit(c.Key))
		files.when(c.CA != "", "CA", jen.Lit(c.CA))
		f.when(len(files) > 0, "NodeTLS", raft("TLS").Values(files...))
		f.when(c.TrustDomain != "", "NodeTrustDomain", jen.Lit(c.TrustDomain))
	}
	f.when(r.ByController, "Carried", jen.True())
	f.when(r.Insecure, "Insecure", jen.True())
	return f
}

// machineInstances writes the type with which code outside the topology chooses an instance of
// a state machine.
//
//	type LedgerInstances struct {
//		t *Topology
//	}
//
//	func (x LedgerInstances) At(i int) *Ledger { return x.t.ledger[i].p }
//
//	func (x LedgerInstances) For(key string) *Ledger { return x.At(route.String(key, 16)) }
func (p *part) machineInstances(q *processor) {
	m, name := q.Machine, mustIdent(q.InstancesType())
	x, i, n := p.v("x"), p.v("i"), jen.Lit(q.Instances)
	p.doc("%s holds the %d instances of %s. Each has a state of its own.", name, q.Instances, q.Name)
	p.add(jen.Type().Add(id(name)).Struct(param(p.v("t"), ptr("Topology"))))
	machine := pointer(typeCode(q.Type))
	p.doc("Len returns the number of instances.")
	p.ofValue(x, name, "Len", nil, []code{jen.Int()}, jen.Return(n))
	p.doc("At returns one instance; the first is At(0).")
	p.ofValue(x, name, "At", []code{param(i, jen.Int())}, []code{machine}, jen.Return(sel(x, "t", q.field).Index(id(i)).Dot("p")))
	if m.Keyed == nil {
		return
	}
	e, key := &edge{Edge: m.Keyed, to: q}, p.v("key")
	if e.Route == plan.Key {
		p.doc("For returns the instance for updates whose %s is key.", e.accessText())
		p.ofValue(x, name, "For", []code{param(key, keyType(m.KeyType))}, []code{machine},
			jen.Return(sel(x, "At").Call(jen.Qual(routePath, e.hashName()).Call(id(key), n))))
	}
	p.proposals(q, e, name)
}

// ofValue writes a method of one statement with a value receiver.
func (p *part) ofValue(receiver, typ, name Ident, params, results []code, body code) {
	p.add(jen.Func().Params(param(receiver, id(typ))).Add(id(name)).Params(params...).Add(results...).Add(oneLine(body)))
}

// proposals writes the methods that propose an update to the instance that the key of the
// update selects.
//
//	func (x LedgerInstances) Propose(ctx context.Context, u Transfer) (r int64, err error) {
//		i := route.String("", 16) // if a pointer in Owner.Name is nil
//		if u.Owner != nil {
//			i = route.String(u.Owner.Name, 16)
//		}
//		return x.At(i).Propose(ctx, u)
//	}
func (p *part) proposals(q *processor, e *edge, name Ident) {
	x, i, u, r, err, ctx := p.v("x"), p.v("i"), p.v("u"), p.v("r"), p.v("err"), p.v("ctx")
	before, _ := e.byAccess(id(u), i, true, jen.Lit(q.Instances))
	if e.Route == plan.ID {
		before = append(before, jen.If(id(i).Op("<").Lit(0)).Block(jen.Return(id(r), topo("ErrNoInstance"))))
	}
	selected := "that the hash of " + e.accessText() + " selects"
	if e.Route == plan.ID {
		selected = "whose index is " + e.accessText()
	}
	for _, method := range []struct {
		name   Ident
		result code
		doc    string
	}{
		{"Propose", typeCode(q.Machine.ResultType), "Propose proposes an update to the instance %s."},
		{"ProposeResult", fsm("Result").Types(typeCode(q.Machine.ResultType)), "ProposeResult is like Propose and also returns the position of the update in the log of the instance %s."},
	} {
		p.doc(method.doc, selected)
		p.add(jen.Func().Params(param(x, id(name))).Add(id(method.name)).Params(param(ctx, jen.Qual("context", "Context")), param(u, typeCode(q.Machine.UpdateType))).
			Params(param(r, method.result), param(err, jen.Error())).Block(
			append(slices.Clone(before), jen.Return(sel(x, "At").Call(id(i)).Dot(string(method.name)).Call(id(ctx), id(u))))...))
	}
}

// keyType is a basic type, or []byte.
func keyType(name string) code {
	if name == "[]byte" {
		return jen.Index().Byte()
	}
	return id(mustIdent(name))
}
