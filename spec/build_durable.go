package spec

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/spec/finding"
)

var durableKeys = setters[Durable]{
	"store":    (*builder).storeOf,
	"lease":    func(b *builder, d *Durable, v *Value) { d.Lease = b.duration(v, leaseMin) },
	"listen":   func(_ *builder, d *Durable, v *Value) { d.Listen = v.text() },
	"tls":      func(b *builder, d *Durable, v *Value) { d.TLS = new(TLS); set(b, tlsKeys, d.TLS, v) },
	"insecure": func(_ *builder, d *Durable, v *Value) { d.Insecure = v.boolean() },
}

var storeKeys = setters[Durable]{
	"raft": func(_ *builder, d *Durable, v *Value) { d.Raft = v.text() },
}

var limitKeys = setters[Limit]{
	"concurrency": func(_ *builder, l *Limit, v *Value) { l.Concurrency = v.integer() },
	"rate":        func(b *builder, l *Limit, v *Value) { l.Rate = b.rate(v) },
	"per":         func(_ *builder, l *Limit, v *Value) { l.Per = v.text() },
}

func (b *builder) durable(t *Topology, v *Value) {
	t.Durable = &Durable{Lease: defaultLease, RaftTo: -1, At: v.At, Pointer: v.Pointer}
	set(b, durableKeys, t.Durable, v)
}

// storeOf reads a folder, or the mapping that names a group of nodes.
func (b *builder) storeOf(d *Durable, v *Value) {
	if v.Kind == String {
		d.Store = b.folder(v, "./promises")
		return
	}
	set(b, storeKeys, d, v)
}

func (b *builder) limit(e *Edge, v *Value) {
	e.Limit = &Limit{At: v.At, Pointer: v.Pointer}
	set(b, limitKeys, e.Limit, v)
}

var rateForm = regexp.MustCompile(`^([0-9]+)/(.+)$`)

// rate reads a rate such as "100/s" or "1/10s", or a number for each second.
func (b *builder) rate(v *Value) Rate {
	if v.Kind != String {
		return Rate{v.integer(), time.Second}
	}
	m := rateForm.FindStringSubmatch(v.Text)
	if m == nil {
		b.wrongRate(v, finding.Form, "must be a number and a duration joined by /")
		return Rate{}
	}
	count, err := strconv.Atoi(m[1])
	every := m[2]
	if every[0] < '0' || every[0] > '9' {
		every = "1" + every // "/s" is "/1s"
	}
	d, wrong := time.ParseDuration(every)
	switch {
	case wrong != nil || strings.HasPrefix(m[2], "-"):
		b.wrongRate(v, finding.Form, "must end with a duration")
	case err != nil || count < 1 || count > rateMax:
		b.wrongRate(v, finding.OutOfRange, "must have a number from 1 to "+strconv.Itoa(rateMax))
	case d < time.Millisecond:
		b.wrongRate(v, finding.OutOfRange, "must have a duration of at least 1ms")
	default:
		return Rate{count, d}
	}
	return Rate{}
}

func (b *builder) wrongRate(v *Value, code, rule string) {
	b.found.add(code, v.At, v.Pointer, v.key()+" "+rule+", got "+quoted(v.Text), "write a rate such as 100/s, 5/m or 1/10s")
}
