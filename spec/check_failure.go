package spec

import (
	"fmt"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

// checkFailures reports options about failures that are invalid or have no effect.
func (b *builder) checkFailures() {
	receives, durable := b.receives(), b.durableAlone()
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		if p.External || p.Machine != nil { // each of these keys already has a finding
			continue
		}
		b.checkRestart(p, b.entries[i])
		b.checkMemory(p, b.entries[i])
		b.checkOnError(i, b.entries[i], receives[i], durable[i])
	}
	b.checkDeadLetters()
}

// receives returns for each processor whether it has an input: an edge, a timer, a reply or
// dead letters.
func (b *builder) receives() []bool {
	receives := make([]bool, len(b.topology.Processors))
	for _, e := range b.topology.Edges {
		if e.To >= 0 {
			receives[e.To] = true
		}
		if e.From >= 0 && e.Reply.Value != "" {
			receives[e.From] = true
		}
	}
	for _, to := range b.topology.deadLetters() {
		if to >= 0 {
			receives[to] = true
		}
	}
	return receives
}

// noEffect reports options that have no effect.
func (b *builder) noEffect(of *Value, reason, suggestion string, names ...string) {
	for _, name := range names {
		if f := of.field(name); f != nil {
			b.found.addText(finding.NoEffect, f.Key, name+" has no effect: "+reason, suggestion)
		}
	}
}

func (b *builder) checkRestart(p *Processor, entry *Value) {
	r := &p.Restart
	if !r.Given || b.found.broken[r.Pointer] {
		return
	}
	options := entry.field("restart").Value
	switch {
	case r.Policy == Never && b.found.broken["/groups"]: // a broken group may contain the processor
	case r.Policy == Never:
		b.noEffect(options, "the policy is never", `write "policy: on-failure", or remove it`, "max_restarts", "delay", "max_delay", "window", "jitter")
	case r.Delay == 0:
		b.noEffect(options, "there is no delay", "write a delay, or remove it", "max_delay", "jitter")
	default:
		b.checkDelays(options, r.Delay, r.MaxDelay)
	}
}

// checkDelays reports a max_delay below the delay.
func (b *builder) checkDelays(options *Value, delay, longest time.Duration) {
	if longest > 0 && longest < delay {
		f := options.field("max_delay")
		b.found.add(finding.MaxDelay, f.Value.At, f.Value.Pointer, fmt.Sprintf("max_delay must be at least delay, which is %s, got %s", duration(delay), duration(longest)), "write a longer max_delay, or the value of delay for equal delays")
	}
}

func (b *builder) checkMemory(p *Processor, entry *Value) {
	if p.Isolation != Process && !b.found.broken[p.Pointer+"/isolation"] {
		b.noEffect(entry, "it limits a process, and the isolation is not process", `write "isolation: process", or remove it`, "memory")
	}
}

// checkOnError reports options of on_error that have no effect. If durable is set, all inputs
// of the processor are durable edges.
func (b *builder) checkOnError(processor int, entry *Value, receives, durable bool) {
	p := &b.topology.Processors[processor]
	o := &p.OnError
	if !o.Given || b.found.broken[o.Pointer] || b.found.broken[p.Pointer+"/restart"] || b.found.broken["/groups"] {
		return
	}
	if durable && o.Then == Stop && !b.found.broken["/edges"] {
		b.found.add(finding.DurableHas, entry.field("on_error").Key.At, o.Pointer, fmt.Sprintf("on_error of %s must not be stop: an error of a durable function rejects its promise, and the topology continues", quoted(p.Name.Value)),
			`write "then: retry" or "then: skip"`)
		return
	}
	_, grouped := b.groupOf[processor]
	options, restart := entry.field("on_error").Value, `write "restart: on-failure", "then: skip" or "then: retry"`
	b.checkRetryDelay(o, options, receives || b.found.broken["/edges"])
	switch {
	case !receives && !b.found.broken["/edges"]:
		b.noEffect(options, "the processor receives no messages", "remove it", "max_attempts", "dead_letter")
	case o.Then == Skip:
		b.noEffect(options, "skip gives up a message at once", `write "then: retry", or remove it`, "max_attempts")
	case o.Then == Stop && p.Restart.Policy == Never && grouped:
		b.noEffect(options, "there is no next instance for a second attempt", restart, "max_attempts")
	case o.Then == Stop && p.Restart.Policy == Never:
		b.noEffect(options, "the first error ends the topology", restart, "max_attempts", "dead_letter")
	}
}

// retryDelays are the keys of on_error that delay the next attempt at a message.
var retryDelays = []string{"delay", "max_delay", "jitter"}

// checkRetryDelay reports delays of retries that have no effect.
func (b *builder) checkRetryDelay(o *OnError, options *Value, receives bool) {
	switch {
	case !receives:
		b.noEffect(options, "the processor receives no messages", "remove it", retryDelays...)
	case o.Then == Skip:
		b.noEffect(options, "skip gives up a message at once", `write "then: retry", or remove it`, retryDelays...)
	case o.Then == Stop:
		b.noEffect(options, "after an error the instance ends, and the next attempt waits for its restart", `write "then: retry", or the same key under restart`, retryDelays...)
	case o.MaxAttempts == 1:
		b.noEffect(options, "there is no second attempt", "write max_attempts of at least 2, or remove it", retryDelays...)
	case o.Delay == 0:
		b.noEffect(options, "there is no delay", "write a delay, or remove it", "max_delay", "jitter")
	default:
		b.checkDelays(options, o.Delay, o.MaxDelay)
	}
}

// checkAttempts warns of processors with fewer restarts than attempts at a message, where one
// message that always fails uses up all restarts.
func (b *builder) checkAttempts() {
	receives := b.receives()
	for i := range b.topology.Processors {
		p := &b.topology.Processors[i]
		limit, attempts := p.Restart.MaxRestarts, p.Attempts()
		if limit == 0 || attempts <= limit || p.OnError.Then != Stop || !receives[i] || p.Restart.Policy == Never || p.Restart.neverReached() {
			continue
		}
		f := b.entries[i].field("restart").Value.field("max_restarts")
		b.found.add(finding.UsedUp, f.Value.At, f.Value.Pointer,
			fmt.Sprintf("%s may make %d attempts to handle a message, but max_restarts is %d: one message that fails each time uses up all restarts", quoted(p.Name.Value), attempts, limit),
			fmt.Sprintf(`write "then: retry", or max_restarts of at least %d`, attempts))
	}
}

// checkDeadLetters reports dead letters that go to an unsuitable processor or form a cycle.
func (b *builder) checkDeadLetters() {
	processors := b.topology.Processors
	visited := make([]int, len(processors)) // n: visited on the path that starts at processor n-1
	for from, to := range b.topology.deadLetters() {
		name := processors[from].OnError.DeadLetter
		if to < 0 || b.found.exact[name.Pointer] {
			continue
		}
		switch target := &processors[to]; {
		case target.External:
			b.found.addText(finding.IntoExternal, name, "dead letters must not go to an external processor, got "+quoted(name.Value), "name a processor that handles them")
		case target.Instances > 1 && !b.found.broken[target.Pointer+"/instances"]:
			b.found.addText(finding.DeadLetter, name, fmt.Sprintf("dead letters must go to a processor with one instance, and %s has %d", quoted(name.Value), target.Instances), "name a processor with one instance")
		case to == from:
			b.found.addText(finding.DeadLetter, name, "a processor must not receive its own dead letters, got "+quoted(name.Value), "name another processor")
		default:
			b.checkDeadLetterCycle(from, visited)
		}
	}
}

// checkDeadLetterCycle follows dead letters from a processor and reports a cycle. visited makes
// sure that all calls together visit each processor once.
func (b *builder) checkDeadLetterCycle(from int, visited []int) {
	processors := b.topology.Processors
	var chain []int
	p := from
	for p >= 0 && visited[p] == 0 {
		visited[p] = from + 1
		chain = append(chain, p)
		p = processors[p].OnError.DeadLetterTo
	}
	if p < 0 || visited[p] != from+1 {
		return
	}
	for chain[0] != p {
		chain = chain[1:]
	}
	if len(chain) < 2 { // a processor that names itself has another finding
		return
	}
	b.found.addText(finding.DeadLetter, processors[p].OnError.DeadLetter, "dead letters must not form a cycle, got "+b.pathText(append(chain, p)), "remove dead_letter from one of these processors")
}

// checkMember reports a processor that cannot be a member of the group.
func (b *builder) checkMember(g *Group, name Text, processor int) bool {
	if b.topology.Processors[processor].External {
		b.found.addText(finding.Member, name, "a group must not contain an external processor, got "+quoted(name.Value), "remove it")
		return false
	}
	if b.isMachine(processor) {
		b.found.addText(finding.Member, name, fmt.Sprintf("a group must not contain a processor of kind %s, got %s: it is never restarted", b.topology.Processors[processor].Machine.Kind, quoted(name.Value)), "remove it")
		return false
	}
	switch other, ok := b.groupOf[processor]; {
	case !ok:
		b.groupOf[processor] = g.Name
		return true
	case other.Pointer == g.Pointer:
		b.found.addText(finding.Member, name, "a processor must be in a group once, got "+quoted(name.Value)+" again", "remove one of them")
	default:
		b.found.addText(finding.Member, name, fmt.Sprintf("a processor must be in one group, and %s is in %s too", quoted(name.Value), quoted(other.Value)), "remove it from one of them")
	}
	return false
}

// checkIntensity reports intensity without period and period without intensity. A default for
// the missing one would be misleading.
func (b *builder) checkIntensity(g *Group, v *Value) {
	intensity, period := v.field("intensity"), v.field("period")
	switch {
	case intensity != nil && period == nil:
		b.found.add(finding.MissingKey, intensity.Key.At, g.Pointer, "intensity must go with period, the time in which restarts are counted", `write "period: `+duration(g.Period)+`"`)
	case intensity == nil && period != nil:
		b.found.add(finding.MissingKey, period.Key.At, g.Pointer, "period must go with intensity, the number of restarts within it", fmt.Sprintf(`write "intensity: %d"`, g.Intensity))
	}
}

// checkShutdown reports a shutdown with a strategy that stops no other members.
func (b *builder) checkShutdown(g *Group, v *Value) {
	if g.Strategy == OneForOne && !b.found.broken[g.Pointer+"/strategy"] {
		b.noEffect(v, "with one-for-one only the failed instance ends, and no other member is stopped", `write "strategy: one-for-all" or "strategy: rest-for-one", or remove it`, "shutdown")
	}
}

// checkSupervisedEdge reports an arm without effect, and full: fail on an edge from an isolated
// processor.
func (b *builder) checkSupervisedEdge(i int, e *Edge) {
	if arm := b.option(i, "arm"); arm != nil && b.option(i, "input_timeout") == nil {
		b.found.addText(finding.NoEffect, arm.Key, "arm has no effect: the edge has no input_timeout", "write input_timeout, or remove arm")
	}
	if e.Full != Fail || e.From < 0 || b.topology.Processors[e.From].Isolation != Process {
		return
	}
	full := b.option(i, "full").Value
	b.found.add(finding.IsolatedFails, full.At, full.Pointer, fmt.Sprintf("full must not be fail, because %s runs in its own process and cannot see whether the queue is full", quoted(e.FromText.Value)),
		"write block, drop-oldest or drop-newest")
}
