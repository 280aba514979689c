package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// refusals count what one peer has sent and this node has refused, or events of the peer. A
// hostile or broken peer can send as many refused frames as its connection carries, so not
// each of them is logged.
type refusals struct {
	times  uint64        // since the last line
	logAt  time.Duration // no line before
	logged bool          // a line was written; logAt is not valid before
	last   refusedLine
}

// refusedLine is one line of the log.
type refusedLine struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// refusalLogEvery is the time between two lines about one peer and one kind of refusal. The
// first line says what is wrong. The later ones only say that it continues, and how often it
// has happened. With a line in a minute, 1,000 such peers fill 10 MB of log in an hour.
const refusalLogEvery = time.Minute

// add counts a refusal, and logs it if the peer was not reported for refusalLogEvery.
func (r *refusals) add(log *slog.Logger, now time.Duration, last refusedLine) {
	r.times++
	r.last = last
	if r.logged && now < r.logAt {
		return
	}
	r.logged, r.logAt = true, now+refusalLogEvery
	r.report(log)
}

// report logs the refusals since the last line. It is also called when no other line
// follows, so that all of them are reported.
func (r *refusals) report(log *slog.Logger) {
	if r.times == 0 {
		return
	}
	attrs := r.last.attrs
	if r.times > 1 {
		attrs = append(attrs, slog.Uint64("times", r.times))
	}
	log.LogAttrs(context.Background(), r.last.level, r.last.text, attrs...)
	r.times, r.last = 0, refusedLine{}
}

// peerRefusals are those of a node, or of all clients with one certificate: a client chooses
// its name, and may choose another one for each connection.
type peerRefusals struct {
	badFrames, badMessages refusals
	// Events of the session, which a program that fails again and again causes.
	restarts, refusedByPeer, refusesPeer refusals

	misses refusals // pairs that the node has returned
	excess refusals // pairs of which too many messages wait here
}

func (r *peerRefusals) list() []*refusals {
	return []*refusals{&r.badFrames, &r.badMessages, &r.misses, &r.excess, &r.restarts, &r.refusedByPeer, &r.refusesPeer}
}

// duplicates limits the lines about nodes for which failure detection sees two processes.
type duplicates struct {
	mu     sync.Mutex
	byName map[string]*refusals
}

func (d *duplicates) add(log *slog.Logger, now time.Duration, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byName == nil {
		d.byName = map[string]*refusals{}
	}
	r := d.byName[name]
	if r == nil {
		r = new(refusals)
		d.byName[name] = r
	}
	r.add(log, now, refusedLine{slog.LevelError, "topogen: two processes have the name of one node", []slog.Attr{slog.String("node", name)}})
}

// names are the nodes that were reported.
func (d *duplicates) names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.byName))
}

// drop forgets a node that is gone.
func (d *duplicates) drop(log *slog.Logger, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byName[name]; r != nil {
		r.report(log)
		delete(d.byName, name)
	}
}

// report logs what is not in the log yet.
func (d *duplicates) report(log *slog.Logger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.byName)) {
		d.byName[name].report(log)
	}
}
