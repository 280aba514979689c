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

// machineKeys are the keys that processors of each kind have; "": one of the user's.
var machineKeys = map[MachineKind][]string{
	FSM:  {"kind", "state", "update", "result", "revert", "instances", "key", "route", "controller", "log", "raft"},
	Raft: {"kind", "controller", "log", "group", "peers", "election_timeout", "heartbeat", "transport", "insecure", "tls", "trust_domain"},
}

// requiredKeys are those of them that cannot be left out.
var requiredKeys = map[MachineKind][]string{
	FSM:  {"state", "update"},
	Raft: {"controller", "peers", "log"},
}

// checkKind reports keys that do not go with the kind of a processor, and those
// that it lacks.
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
			b.found.addText(finding.KindHas, f.Key, fmt.Sprintf("%s is of kind %s and has no %s", quoted(p.Name.Value), m.Kind, name), b.replacement(m, name))
		case isMachineKey(name):
			b.found.addText(finding.KindHas, f.Key, fmt.Sprintf("%s has no kind, and %s belongs to one", quoted(p.Name.Value), name), kindSuggestion(name))
		}
	}
	for _, name := range requiredKeys[m.Kind] {
		if entry.field(name) == nil {
			b.found.add(finding.MissingKey, p.Name.At, p.Pointer, fmt.Sprintf("%s is of kind %s and has no %s", quoted(p.Name.Value), m.Kind, name), requiredHint[name])
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

// checkUpdates reports a result that is no type, and updates that nothing can revert.
func (b *builder) checkUpdates(p *Processor, entry *Value) {
	m := p.Machine
	if b.types[m.Result.Value] == "" {
		b.checkType(m.Result)
	}
	switch revert := entry.field("revert"); {
	case !m.Revert || b.found.exact[revert.Value.Pointer]:
	case m.Raft != nil:
		b.found.addText(finding.KindHas, revert.Key, fmt.Sprintf("%s has raft and revert: updates that others do not know cannot wait on one node", quoted(p.Name.Value)), "leave one of them out")
	case entry.field("controller") == nil:
		b.noEffect(entry, "there is no controller that could revert", "name the controller, or leave it out", "revert")
	}
}

// checkInstances reports a machine of several instances that does not say which one an
// update is for.
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
		b.noEffect(entry, "there is one instance", "add instances, or leave it out", "key", "route")
	case m.Log != nil && p.Instances > machinesMax:
		b.found.addText(finding.OutOfRange, instances.Key, fmt.Sprintf("%s has %d instances, and at most %d may have a log", name, p.Instances, machinesMax), "write fewer: each has a folder of 16 MiB or more")
	case r.Kind == RouteNone && r.Pointer != "":
		b.found.add(finding.MissingKey, r.At, r.Pointer, "the route is empty", "write local, or {id: FIELD}")
	case r.Kind == RouteBroadcast || r.Kind == RouteRange:
		b.found.add(finding.RouteUnfit, r.At, r.Pointer, fmt.Sprintf("an update is for one instance, and the route is %s", r.Kind), `write "key: FIELD", local or {id: FIELD}`)
	case r.Kind == RouteNone && entry.field("controller") != nil:
		b.found.addText(finding.NoRoute, instances.Key, fmt.Sprintf("%s has %d instances, and nothing says which one an update is for", name, p.Instances), `write "key: FIELD" with a field or method of the update, or a route: local or {id: FIELD}`)
	case r.Kind == RouteLocal && entry.field("controller") == nil:
		b.noEffect(entry, "there is no controller whose instance would count", `write "key: FIELD", or leave it out`, "route")
	}
	if p.Instances > 1 && m.Revert && !b.found.exact[revert.Value.Pointer] {
		b.found.addText(finding.KindHas, revert.Key, name+" has several instances and revert: updates that are added together would be for several of them", "leave one of them out")
	}
}

// isMachineKey reports whether only machines have a key.
func isMachineKey(name string) bool {
	return name != "instances" && (slices.Contains(machineKeys[FSM], name) || slices.Contains(machineKeys[Raft], name))
}

var requiredHint = map[string]string{
	"state":      "name the type of the state",
	"update":     "name the type of what changes the state",
	"controller": "name the processor that gets the committed entries",
	"peers":      missingHint["peers"],
	"log":        "say where it is kept: {path: ./log}",
}

// replacement says what to write instead of a key that a machine does not have.
func (b *builder) replacement(m *Machine, name string) string {
	switch {
	case m.Kind == FSM && slices.Contains(machineKeys[Raft], name) && raftKeys[name] != nil:
		return "write it under raft"
	case slices.Contains(machineKeys[FSM], name):
		return "write \"kind: fsm\", or leave it out"
	}
	return "leave it out"
}

// kindSuggestion says which kind has a key.
func kindSuggestion(name string) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(machineKeys)) {
		if slices.Contains(machineKeys[kind], name) {
			kinds = append(kinds, fmt.Sprintf("\"kind: %s\"", kind))
		}
	}
	return "write " + strings.Join(kinds, " or ") + ", or leave it out"
}

// logPath reads the path of a log's folder.
func (b *builder) logPath(v *Value) Text {
	t := v.text()
	if strings.ContainsFunc(t.Value, unicode.IsControl) {
		b.found.addText(finding.Form, t, quoted(t.Value)+" has control characters", `name a folder, such as "./log"`)
	}
	return t
}

// checkLog reports what a log cannot be.
func (b *builder) checkLog(p *Processor, entry *Value) {
	m := p.Machine
	log := entry.field("log")
	if m.Log == nil || b.found.exact[m.Log.Pointer] {
		if raft := entry.field("raft"); raft != nil && m.Kind == FSM && log == nil {
			b.found.add(finding.MissingKey, raft.Key.At, p.Pointer, quoted(p.Name.Value)+" has raft and no log: what a node has promised it must not forget", requiredHint["log"])
		}
		return
	}
	if m.Log.Sync != SyncInterval && !b.found.broken[m.Log.Pointer+"/sync"] {
		b.noEffect(log.Value, fmt.Sprintf("sync is %s", m.Log.Sync), `write "sync: interval", or leave it out`, "interval")
	}
	if sync := log.Value.field("sync"); m.Replicated() && m.Log.Sync != SyncAlways && sync != nil && !b.found.exact[sync.Value.Pointer] {
		b.found.add(finding.UnsafeSync, sync.Value.At, sync.Value.Pointer, fmt.Sprintf("with sync: %s a node that falls down forgets what it has promised to others", m.Log.Sync), "write always, or leave it out")
	}
}

// checkReplication reports what a group of nodes cannot be.
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
			b.found.add(finding.Election, f.Value.At, f.Value.Pointer, fmt.Sprintf("election_timeout is %v, less than %d heartbeats of %v: one that is late would unseat a leader", r.ElectionTimeout, electionFactor, r.Heartbeat),
				fmt.Sprintf("write an election_timeout of at least %v", least))
		}
	}
	switch {
	case r.ByController:
		b.noEffect(options, "the controller carries the messages", `write "transport: grpc", or leave it out`, "insecure", "tls", "trust_domain")
	case r.TLS != nil:
		b.noEffect(options, "there is tls", "leave one of them out", "insecure")
	}
}

// checkPeers reports nodes that are one, too many, or cannot be reached.
func (b *builder) checkPeers(r *Replication, options *Value) {
	f := options.field("peers")
	if f == nil || b.found.exact[f.Value.Pointer] {
		return
	}
	if len(f.Value.Fields) > peersMax {
		over := f.Value.Fields[peersMax].Key
		b.found.addText(finding.Peers, over, fmt.Sprintf("a group has at most %d nodes that vote; this one is beyond", peersMax), "leave it out: nodes that only follow are added while the group runs")
	}
	seen := map[string]Text{}
	for _, peer := range r.Peers {
		at := peer.Address
		host, port, err := net.SplitHostPort(at.Value)
		switch first, twice := seen[at.Value]; {
		case r.ByController: // the controller knows what it means
		case err != nil || host == "" || port == "":
			b.found.addText(finding.Peers, at, quoted(at.Value)+" is not an address of a host and a port", `write such as "127.0.0.1:7101"`)
		case twice:
			b.found.addText(finding.Peers, at, fmt.Sprintf("%s has the address of %s", quoted(peer.Name.Value), quoted(first.Value)), "give each node an address of its own")
		}
		seen[at.Value] = peer.Name
	}
}

// checkController reports a processor that cannot control a machine.
func (b *builder) checkController(machine int, m *Machine) bool {
	c := &b.topology.Processors[m.ControllerTo]
	name := quoted(m.Controller.Value)
	switch {
	case m.ControllerTo == machine:
		b.found.addText(finding.Controller, m.Controller, name+" cannot control itself", "name another processor")
	case c.External:
		b.found.addText(finding.Controller, m.Controller, name+" is external and receives no answers", "leave the controller out: (*Topology)."+b.topology.Processors[machine].Ident+" proposes from outside")
	case c.Machine != nil && c.Machine.Kind != "":
		b.found.addText(finding.Controller, m.Controller, name+" is a machine itself", "name a processor of your own")
	case c.Isolation == Process:
		b.found.addText(finding.Controller, m.Controller, name+" runs in a process of its own, which answers of a machine do not cross to", `take "isolation: process" from it`)
	default:
		return true
	}
	return false
}

// checkMachines reports machines that would write to one folder or be one group,
// and what names a machine and cannot.
func (b *builder) checkMachines() {
	logs, groups := map[string]Text{}, map[string]Text{}
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		m := p.Machine
		if m == nil || m.Kind == "" {
			continue
		}
		if m.Log != nil {
			b.checkShared(logs, p, m.Log.Path, "keeps its log in")
			b.checkFolders(logs, p)
		}
		if m.Raft != nil {
			b.checkShared(groups, p, m.Raft.Group, "is the group")
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
			b.found.add(finding.MachineEdge, e.ToText.At, e.Pointer, fmt.Sprintf("%s is a machine: its controller alone sends to it, and the file does not declare that", quoted(e.ToText.Value)),
				"leave this one out, and let the controller send")
		}
	}
	for from, to := range b.topology.deadLetters() {
		if name := b.topology.Processors[from].OnError.DeadLetter; b.isMachine(to) {
			b.found.addText(finding.MachineEdge, name, quoted(name.Value)+" is a machine, which takes no dead letters", "name a processor of your own")
		}
	}
}

// checkEvent reports an edge of the file from a machine that carries no event, or carries
// it in a way that cannot be.
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
		b.found.add(finding.MachineEdge, e.FromText.At, e.Pointer, name+" is a machine of kind raft: its edges lead from and to its controller, and the file does not declare them", "leave this one out")
	case !ok:
		at := e.Message
		if at.Value == "" {
			at = Text{At: e.FromText.At, Pointer: e.Pointer}
		}
		b.found.addText(finding.MachineEdge, at, fmt.Sprintf("%s is a machine: it tells %s and %s; what it answers to its controller the file does not declare", name, p.Ident+eventApplied, p.Ident+eventLeadership),
			"write one of them, or leave the edge out")
	case e.Reply.Value != "":
		b.found.addText(finding.MachineEdge, e.Reply, name+" is a machine, and takes no reply to what it tells", "leave the reply out")
	case to >= 0 && b.topology.Processors[to].Isolation == Process:
		b.found.add(finding.MachineEdge, e.ToText.At, e.Pointer, quoted(e.ToText.Value)+" runs in a process of its own, and what a machine tells does not leave this one", `take "isolation: process" from it`)
	case event.Name == eventApplied && p.Machine.Revert:
		b.found.addText(finding.MachineEdge, e.Message, fmt.Sprintf("%s has revert: an update that was applied may be undone, and nothing would tell", name), "leave revert out, or the edge")
	case event.Name == eventLeadership && e.Full == Fail && full != nil:
		b.found.add(finding.MachineEdge, full.Value.At, full.Value.Pointer, "the newest leader would be lost where the queue is full", `write "full: drop-oldest", or leave it out`)
	}
}

func (b *builder) isMachine(processor int) bool {
	if processor < 0 {
		return false
	}
	m := b.topology.Processors[processor].Machine
	return m != nil && m.Kind != ""
}

// checkShared reports a folder, or a group, of two machines.
func (b *builder) checkShared(seen map[string]Text, p *Processor, what Text, does string) {
	if what.Value == "" || b.found.exact[what.Pointer] {
		return
	}
	first, ok := seen[path.Clean(what.Value)] // which leaves a name as it is
	if !ok {
		seen[path.Clean(what.Value)] = p.Name
		return
	}
	b.found.addText(finding.Shared, what, fmt.Sprintf("%s %s %s, as %s does", quoted(p.Name.Value), does, quoted(what.Value), quoted(first.Value)), "give each machine its own")
}

// checkFolders reports a folder of another machine that would be that of an instance.
func (b *builder) checkFolders(seen map[string]Text, p *Processor) {
	where := p.Machine.Log.Path
	if p.Instances == 1 || p.Machine.Raft != nil || where.Value == "" || b.found.exact[where.Pointer] {
		return
	}
	for i := range min(p.Instances, machinesMax) {
		folder := path.Join(where.Value, strconv.Itoa(i))
		if first, ok := seen[folder]; ok {
			b.found.addText(finding.Shared, where, fmt.Sprintf("%s keeps the log of instance %d in %s, as %s does", quoted(p.Name.Value), i, quoted(folder), quoted(first.Value)), "give each machine its own")
			return
		}
		seen[folder] = p.Name
	}
}
