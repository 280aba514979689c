package spec

import (
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/topogen/topogen/spec/finding"
)

// machineKeys holds the keys of processors of each kind.
var machineKeys = map[MachineKind][]string{
	FSM:  {"kind", "state", "update", "result", "revert", "instances", "key", "route", "controller", "log", "raft"},
	Raft: {"kind", "controller", "log", "group", "peers", "election_timeout", "heartbeat", "transport", "insecure", "tls", "trust_domain"},
}

// requiredKeys holds the required ones among machineKeys.
var requiredKeys = map[MachineKind][]string{
	FSM:  {"state", "update"},
	Raft: {"controller", "peers", "log"},
}

// checkKind reports keys that do not go with the kind of a processor, and missing keys.
func (b *builder) checkKind(p *Processor, entry *Value) {
	m := p.Machine
	if m == nil || b.found.exact[p.Pointer+"/kind"] {
		return
	}
	known := machineKeys[m.Kind]
	for _, f := range entry.Fields {
		name := f.Key.Value
		if processorKeys[name] == nil || slices.Contains(known, name) {
			continue
		}
		switch {
		case m.Kind != "":
			b.found.addText(finding.KindHas, f.Key, fmt.Sprintf("%s is of kind %s and must not have %s", quoted(p.Name.Value), m.Kind, name), b.replacement(m, name))
		case isMachineKey(name):
			b.found.addText(finding.KindHas, f.Key, fmt.Sprintf("%s must go with a kind, but %s has no kind", name, quoted(p.Name.Value)), kindSuggestion(name))
		}
	}
	for _, name := range requiredKeys[m.Kind] {
		if entry.field(name) == nil {
			b.found.add(finding.MissingKey, p.Name.At, p.Pointer, fmt.Sprintf("%s is of kind %s and must have the key %s", quoted(p.Name.Value), m.Kind, name), requiredHint[name])
		}
	}
	if m.Kind == FSM {
		b.checkUpdates(p, entry)
		b.checkInstances(p, entry)
	}
	if m.Kind != "" {
		b.checkLog(p, entry)
		b.checkReplication(p, entry)
	}
}

// checkUpdates reports a result that is not a type, and an invalid revert.
func (b *builder) checkUpdates(p *Processor, entry *Value) {
	m := p.Machine
	if b.types[m.Result.Value] == "" {
		b.checkType(m.Result)
	}
	switch revert := entry.field("revert"); {
	case !m.Revert || b.found.exact[revert.Value.Pointer]:
	case m.Raft != nil:
		b.found.addText(finding.KindHas, revert.Key, fmt.Sprintf("%s must not have both raft and revert: an update that is not committed cannot be applied on one node", quoted(p.Name.Value)), "remove one of them")
	case entry.field("controller") == nil:
		b.noEffect(entry, "there is no controller", "name the controller, or remove it", "revert")
	}
}

// checkInstances reports a processor of kind fsm with several instances and without a suitable
// key or route.
func (b *builder) checkInstances(p *Processor, entry *Value) {
	m, r := p.Machine, &p.Machine.Route
	instances, revert := entry.field("instances"), entry.field("revert")
	if instances != nil && b.found.exact[instances.Value.Pointer] {
		return
	}
	b.checkField(r.Field)
	name := quoted(p.Name.Value)
	switch {
	case p.Instances == 1:
		b.noEffect(entry, "there is one instance", "add instances, or remove it", "key", "route")
	case m.Log != nil && p.Instances > machinesMax:
		b.found.addText(finding.OutOfRange, instances.Key, fmt.Sprintf("a processor with a log must have at most %d instances, and %s has %d", machinesMax, name, p.Instances), "write fewer: each has a folder of 16 MiB or more")
	case r.Kind == RouteNone && r.Pointer != "":
		b.found.add(finding.MissingKey, r.At, r.Pointer, "route must not be empty", "write local, or {id: FIELD}")
	case r.Kind == RouteCaller:
		b.reserved(Text{At: r.At, Pointer: r.Pointer}, `"route: caller" is`, `write "key: FIELD", local or {id: FIELD}`)
	case r.Kind == RouteBroadcast || r.Kind == RouteRange || r.Kind == RouteNode:
		b.found.add(finding.RouteUnfit, r.At, r.Pointer, fmt.Sprintf("an update must go to one instance, got the route %s", r.Kind), `write "key: FIELD", local or {id: FIELD}`)
	case r.Kind == RouteNone && entry.field("controller") != nil:
		b.found.addText(finding.NoRoute, instances.Key, fmt.Sprintf("a processor of kind fsm with several instances must have a key or a route, and %s has %d instances", name, p.Instances), `write "key: FIELD" with a field or method of the update, or a route: local or {id: FIELD}`)
	case r.Kind == RouteLocal && entry.field("controller") == nil:
		b.noEffect(entry, "local is the instance of the controller, and there is no controller", `write "key: FIELD", or remove it`, "route")
	}
	if p.Instances > 1 && m.Revert && !b.found.exact[revert.Value.Pointer] {
		b.found.addText(finding.KindHas, revert.Key, name+" must not have both several instances and revert: updates that are added together may be for different instances", "remove one of them")
	}
}

// isMachineKey reports whether only processors of kind fsm or raft have a key.
func isMachineKey(name string) bool {
	return name != "instances" && (slices.Contains(machineKeys[FSM], name) || slices.Contains(machineKeys[Raft], name))
}

var requiredHint = map[string]string{
	"state":      "name the type of the state",
	"update":     "name the type of the updates",
	"controller": "name the processor that receives the committed entries",
	"peers":      missingHint["peers"],
	"log":        `write "log: {path: ./log}"`,
}

// replacement says what to write instead of a key that does not go with the kind.
func (b *builder) replacement(m *Machine, name string) string {
	switch {
	case m.Kind == FSM && slices.Contains(machineKeys[Raft], name) && raftKeys[name] != nil:
		return "write it under raft"
	case slices.Contains(machineKeys[FSM], name):
		return "write \"kind: fsm\", or remove it"
	}
	return "remove it"
}

// kindSuggestion names the kinds that have a key.
func kindSuggestion(name string) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(machineKeys)) {
		if slices.Contains(machineKeys[kind], name) {
			kinds = append(kinds, fmt.Sprintf("\"kind: %s\"", kind))
		}
	}
	return "write " + strings.Join(kinds, " or ") + ", or remove it"
}

// folder reads the path of a folder.
func (b *builder) folder(v *Value, example string) Text {
	t := v.text()
	if strings.ContainsFunc(t.Value, unicode.IsControl) {
		b.found.addText(finding.Form, t, v.key()+" must not contain control characters, got "+quoted(t.Value), "name a folder, such as "+quoted(example))
	}
	return t
}

// checkLog reports invalid options of a log, and raft without a log.
func (b *builder) checkLog(p *Processor, entry *Value) {
	m := p.Machine
	log := entry.field("log")
	if m.Log == nil || b.found.exact[m.Log.Pointer] {
		if raft := entry.field("raft"); raft != nil && m.Kind == FSM && log == nil {
			b.found.add(finding.MissingKey, raft.Key.At, p.Pointer, quoted(p.Name.Value)+" has raft and must have the key log: a node must not lose its votes and entries in a restart", requiredHint["log"])
		}
		return
	}
	if m.Log.Sync != SyncInterval && !b.found.broken[m.Log.Pointer+"/sync"] {
		b.noEffect(log.Value, fmt.Sprintf("sync is %s", m.Log.Sync), `write "sync: interval", or remove it`, "interval")
	}
	if sync := log.Value.field("sync"); m.Replicated() && m.Log.Sync != SyncAlways && sync != nil && !b.found.exact[sync.Value.Pointer] {
		b.found.add(finding.UnsafeSync, sync.Value.At, sync.Value.Pointer, fmt.Sprintf("sync must be always with raft, got %s: a node that crashes would lose entries that it has acknowledged", m.Log.Sync), "write always, or remove it")
	}
}

// checkReplication reports invalid options of a raft group.
func (b *builder) checkReplication(p *Processor, entry *Value) {
	m := p.Machine
	r := m.Raft
	if r == nil {
		return
	}
	options := entry
	if m.Kind == FSM {
		raft := entry.field("raft")
		if raft == nil || b.found.exact[raft.Value.Pointer] {
			return
		}
		options = raft.Value
	}
	b.checkPeers(r, options)
	if least := electionFactor * r.Heartbeat; r.ElectionTimeout < least {
		f := options.field("election_timeout")
		if f == nil {
			f = options.field("heartbeat")
		}
		if f != nil && !b.found.exact[f.Value.Pointer] {
			b.found.add(finding.Election, f.Value.At, f.Value.Pointer, fmt.Sprintf("election_timeout must be at least %d heartbeats of %s, got %s: one late heartbeat would start an election", electionFactor, duration(r.Heartbeat), duration(r.ElectionTimeout)),
				fmt.Sprintf("write an election_timeout of at least %s", duration(least)))
		}
	}
	switch {
	case r.ByController:
		b.noEffect(options, "the controller carries the messages", `write "transport: grpc", or remove it`, "insecure", "tls", "trust_domain")
	case r.TLS != nil:
		b.noEffect(options, "tls is set", "remove one of them", "insecure")
	}
}

// checkPeers reports too many peers, and invalid and equal addresses.
func (b *builder) checkPeers(r *Replication, options *Value) {
	f := options.field("peers")
	if f == nil || b.found.exact[f.Value.Pointer] {
		return
	}
	if len(f.Value.Fields) > peersMax {
		over := f.Value.Fields[peersMax].Key
		b.found.addText(finding.Peers, over, fmt.Sprintf("a group must have at most %d peers, got %d", peersMax, len(f.Value.Fields)), "remove it; learners are added while the group runs")
	}
	seen := map[string]Text{}
	for _, peer := range r.Peers {
		at := peer.Address
		host, port, err := net.SplitHostPort(at.Value)
		switch first, twice := seen[at.Value]; {
		case len(at.Value) > addressMax:
			b.longAddress(finding.Peers, "peer", at)
		case r.ByController: // the controller interprets the address
		case err != nil || host == "" || port == "":
			b.found.addText(finding.Peers, at, "the address of a peer must have the form host:port, got "+quoted(at.Value), `write an address such as "127.0.0.1:7101"`)
		case twice:
			b.found.addText(finding.Peers, at, fmt.Sprintf("each peer must have its own address, but %s and %s share one", quoted(first.Value), quoted(peer.Name.Value)), "give each node its own address")
		}
		seen[at.Value] = peer.Name
	}
}

// longAddress reports an address with more bytes than the runtime accepts. The schema counts characters.
func (b *builder) longAddress(code, of string, at Text) {
	b.found.addText(code, at, fmt.Sprintf("the address of a %s must have at most %d bytes, got %d", of, addressMax, len(at.Value)), "write a shorter name of the host")
}

// checkController reports a processor that cannot be a controller.
func (b *builder) checkController(machine int, m *Machine) bool {
	c := &b.topology.Processors[m.ControllerTo]
	name := quoted(m.Controller.Value)
	switch {
	case m.ControllerTo == machine:
		b.found.addText(finding.Controller, m.Controller, "a processor must not control itself, got "+name, "name another processor")
	case c.External:
		b.found.addText(finding.Controller, m.Controller, "a controller must receive answers, and "+name+" is external", "remove the controller: (*Topology)."+b.topology.Processors[machine].Ident+" proposes from outside")
	case c.Machine != nil && c.Machine.Kind != "":
		b.found.addText(finding.Controller, m.Controller, fmt.Sprintf("a controller must have a Go type, and %s is of kind %s", name, c.Machine.Kind), "name a processor with a Go type")
	case c.Isolation == Process:
		b.found.addText(finding.Controller, m.Controller, "a controller must run in this process, and "+name+" runs in its own process", `remove "isolation: process" from it`)
	default:
		return true
	}
	return false
}

// checkMachines reports processors of kind fsm or raft that share a folder or a group, and
// invalid edges and dead letters to and from them.
func (b *builder) checkMachines() {
	logs, groups := map[string]Text{}, map[string]Text{}
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		m := p.Machine
		if m == nil || m.Kind == "" {
			continue
		}
		if m.Log != nil {
			b.checkShared(logs, p, m.Log.Path, "each log must have its own folder")
			b.checkFolders(logs, p)
		}
		if m.Raft != nil {
			b.checkShared(groups, p, m.Raft.Group, "each group must have its own name")
		}
	}
	for i := range b.topology.Edges {
		e := &b.topology.Edges[i]
		if e.Implied {
			continue
		}
		if b.isMachine(e.From) {
			b.checkEvent(i, e)
		}
		if b.isMachine(e.To) {
			b.found.add(finding.MachineEdge, e.ToText.At, e.Pointer, fmt.Sprintf("the file must not declare an edge to %s of kind %s: only its controller sends to it", quoted(e.ToText.Value), b.topology.Processors[e.To].Machine.Kind),
				"remove the edge, and let the controller send")
		}
	}
	for from, to := range b.topology.deadLetters() {
		if name := b.topology.Processors[from].OnError.DeadLetter; b.isMachine(to) {
			b.found.addText(finding.MachineEdge, name, fmt.Sprintf("dead letters must not go to a processor of kind %s, got %s", b.topology.Processors[to].Machine.Kind, quoted(name.Value)), "name a processor with a Go type")
		}
	}
}

// checkEvent reports an edge of the file from a processor of kind raft, and one from a processor
// of kind fsm that carries no event or has an unsuitable option.
func (b *builder) checkEvent(i int, e *Edge) {
	p, to := &b.topology.Processors[e.From], -1
	if e.To >= 0 {
		to = e.To
	}
	name := quoted(p.Name.Value)
	event, ok := b.event(p, e.Message.Value)
	full := b.option(i, "full")
	switch {
	case p.Machine.Kind == Raft:
		b.found.add(finding.MachineEdge, e.FromText.At, e.Pointer, "the file must not declare an edge from "+name+" of kind raft: only its controller receives from it", "remove the edge")
	case !ok:
		at := e.Message
		if at.Value == "" {
			at = Text{At: e.FromText.At, Pointer: e.Pointer}
		}
		b.found.addText(finding.MachineEdge, at, fmt.Sprintf("an edge from %s of kind fsm must carry %s or %s", name, p.Ident+eventApplied, p.Ident+eventLeadership),
			"write one of them, or remove the edge: its controller receives answers without an edge")
	case e.Reply.Value != "":
		b.found.addText(finding.MachineEdge, e.Reply, "an edge from "+name+" of kind fsm must not have a reply", "remove the reply")
	case to >= 0 && b.topology.Processors[to].Isolation == Process:
		b.found.add(finding.MachineEdge, e.ToText.At, e.Pointer, fmt.Sprintf("an edge from %s of kind fsm must stay in this process, and %s runs in its own process", name, quoted(e.ToText.Value)), `remove "isolation: process" from it`)
	case event.Name == eventApplied && p.Machine.Revert:
		b.found.addText(finding.MachineEdge, e.Message, fmt.Sprintf("an edge from %s must not carry %s, because it has revert: an applied update may be undone later", name, e.Message.Value), "remove revert or the edge")
	case event.Name == eventLeadership && e.Full == Fail && full != nil:
		b.found.add(finding.MachineEdge, full.Value.At, full.Value.Pointer, "full must not be fail for "+e.Message.Value+": the newest leader would be lost when the queue is full", `write "full: drop-oldest", or remove it`)
	}
}

func (b *builder) isMachine(processor int) bool { return b.topology.isMachine(processor) }

func (t *Topology) isMachine(processor int) bool {
	if processor < 0 {
		return false
	}
	m := t.Processors[processor].Machine
	return m != nil && m.Kind != ""
}

// checkShared reports a folder or the name of a group that two processors use.
func (b *builder) checkShared(seen map[string]Text, p *Processor, what Text, rule string) {
	if what.Value == "" || b.found.exact[what.Pointer] {
		return
	}
	first, ok := seen[path.Clean(what.Value)] // Clean does not change the name of a group
	if !ok {
		seen[path.Clean(what.Value)] = p.Name
		return
	}
	b.found.addText(finding.Shared, what, fmt.Sprintf("%s, but %s and %s share %s", rule, quoted(first.Value), quoted(p.Name.Value), quoted(what.Value)), "give each processor its own")
}

// checkFolders reports an instance whose folder is the folder of another log.
func (b *builder) checkFolders(seen map[string]Text, p *Processor) {
	where := p.Machine.Log.Path
	if p.Instances == 1 || p.Machine.Raft != nil || where.Value == "" || b.found.exact[where.Pointer] {
		return
	}
	for i := range min(p.Instances, machinesMax) {
		folder := path.Join(where.Value, strconv.Itoa(i))
		if first, ok := seen[folder]; ok {
			b.found.addText(finding.Shared, where, fmt.Sprintf("each log must have its own folder, but %s and instance %d of %s share %s", quoted(first.Value), i, quoted(p.Name.Value), quoted(folder)), "give each processor its own")
			return
		}
		seen[folder] = p.Name
	}
}
