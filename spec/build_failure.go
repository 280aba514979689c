package spec

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

const armAtStart = "start"

var restartKeys = setters[Restart]{
	"policy":       func(b *builder, r *Restart, v *Value) { r.Policy = RestartPolicy(v.Text) },
	"max_restarts": func(b *builder, r *Restart, v *Value) { r.MaxRestarts = v.integer() },
	"delay":        func(b *builder, r *Restart, v *Value) { r.Delay = b.duration(v, 0) },
	"max_delay":    func(b *builder, r *Restart, v *Value) { r.MaxDelay = b.duration(v, 1) },
	"window":       func(b *builder, r *Restart, v *Value) { r.Window = b.duration(v, 1) },
	"jitter":       func(b *builder, r *Restart, v *Value) { r.Jitter = v.number() },
}

var healthKeys = setters[Health]{
	"timeout":         func(b *builder, h *Health, v *Value) { h.Timeout = b.duration(v, timeoutMin) },
	"startup_timeout": func(b *builder, h *Health, v *Value) { h.StartupTimeout = b.duration(v, timeoutMin) },
}

var onErrorKeys = setters[OnError]{
	"then":         func(b *builder, o *OnError, v *Value) { o.Then = Then(v.Text) },
	"max_attempts": func(b *builder, o *OnError, v *Value) { o.MaxAttempts = v.integer() },
	"delay":        func(b *builder, o *OnError, v *Value) { o.Delay = b.duration(v, 0) },
	"max_delay":    func(b *builder, o *OnError, v *Value) { o.MaxDelay = b.duration(v, 1) },
	"jitter":       func(b *builder, o *OnError, v *Value) { o.Jitter = v.number() },
	"dead_letter":  func(b *builder, o *OnError, v *Value) { o.DeadLetter = v.text() },
}

var groupKeys = setters[Group]{
	"processors": (*builder).members,
	"strategy":   func(b *builder, g *Group, v *Value) { g.Strategy = Strategy(v.Text) },
	"intensity":  func(b *builder, g *Group, v *Value) { g.Intensity = v.integer() },
	"period":     func(b *builder, g *Group, v *Value) { g.Period = b.duration(v, timeoutMin) },
	"shutdown":   func(b *builder, g *Group, v *Value) { g.Shutdown, g.ShutdownGiven = b.duration(v, timeoutMin), true },
}

// restart reads a policy, or a mapping.
func (b *builder) restart(r *Restart, v *Value) {
	r.Given, r.At, r.Pointer = true, v.At, v.Pointer
	if v.Kind == String {
		r.Policy = RestartPolicy(v.Text)
		return
	}
	set(b, restartKeys, r, v)
}

func (b *builder) health(h *Health, v *Value) {
	h.At, h.Pointer = v.At, v.Pointer
	set(b, healthKeys, h, v)
}

// onError reads a word, or a mapping.
func (b *builder) onError(o *OnError, v *Value) {
	o.Given, o.At, o.Pointer = true, v.At, v.Pointer
	if v.Kind == String {
		o.Then = Then(v.Text)
		return
	}
	set(b, onErrorKeys, o, v)
}

// deadLetters resolves the processors that receive dead letters.
func (b *builder) deadLetters(processors []Processor) {
	for i := range processors {
		if o := &processors[i].OnError; o.DeadLetter.Pointer != "" {
			o.DeadLetterTo = b.reference(o.DeadLetter, o.DeadLetter.Pointer, b.receivers, "")
		}
	}
}

func (b *builder) groups(t *Topology, v *Value) {
	for _, f := range v.Fields {
		g := Group{
			Name: f.Key, Strategy: OneForOne, Intensity: defaultIntensity, Period: defaultPeriod, Shutdown: defaultShutdown,
			At: f.Key.At, Pointer: f.Key.Pointer,
		}
		set(b, groupKeys, &g, f.Value)
		b.checkIntensity(&g, f.Value)
		b.checkShutdown(&g, f.Value)
		t.Groups = append(t.Groups, g)
	}
}

// members reads the processors of a group.
func (b *builder) members(g *Group, v *Value) {
	for _, item := range v.Items {
		if b.found.exact[item.Pointer] {
			continue
		}
		name := item.text()
		if i := b.reference(name, name.Pointer, b.receivers, ""); i >= 0 && b.checkMember(g, name, i) {
			g.Processors = append(g.Processors, i)
		}
	}
}

// policies fills in the default policies. In a group the default is OnFailure, because a group
// exists to restart its members together.
func (b *builder) policies() {
	for i := range b.topology.Processors {
		r := &b.topology.Processors[i].Restart
		if _, grouped := b.groupOf[i]; r.Policy == "" && grouped {
			r.Policy = OnFailure
		} else if r.Policy == "" {
			r.Policy = Never
		}
	}
}

var (
	bytesForm = regexp.MustCompile(`^[0-9]+(KiB|MiB|GiB)?$`)
	byteUnits = map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// amount holds the limits of an amount of memory, in bytes and as a user writes them.
type amount struct {
	min, max         int64
	minText, maxText string
}

var (
	processMemory = amount{memoryMin, memoryMax, "16MiB", "1048576GiB"}
	messageBytes  = amount{messageLimitMin, messageLimitMax, "64KiB", "1GiB"}
)

// bytes reads an amount of memory: a number of bytes, or a number with a unit.
func (b *builder) bytes(v *Value, of amount) int64 {
	if v.Kind != String {
		return int64(v.number())
	}
	if !bytesForm.MatchString(v.Text) {
		suggestion := "write a whole number with KiB, MiB or GiB, such as 512MiB"
		b.found.add(finding.Form, v.At, v.Pointer, v.key()+" must be an amount of memory, got "+quoted(v.Text), suggestion)
		return 0
	}
	digits := strings.TrimRight(v.Text, "KMGiB")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit := byteUnits[v.Text[len(digits):]]
	switch {
	case err != nil || n > of.max/unit:
		b.found.add(finding.OutOfRange, v.At, v.Pointer, v.key()+" must be at most "+of.maxText+", got "+quoted(v.Text), "write a smaller amount")
	case n*unit < of.min:
		b.found.add(finding.OutOfRange, v.At, v.Pointer, v.key()+" must be at least "+of.minText+", got "+quoted(v.Text), "write a larger amount")
	}
	return n * unit
}
