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

// reportRefusals logs what was refused and is not in the log yet.
func (p *peer) reportRefusals() {
	for _, r := range []*refusals{&p.badFrames, &p.badMessages, &p.misses, &p.restarts, &p.duplicates, &p.refusedByPeer, &p.refusesPeer} {
		r.report(p.core.log)
	}
}

// logRarely logs an event of the peer's session. A process that fails at its start, and is
// started again each second, causes as many of them.
func (p *peer) logRarely(r *refusals, level slog.Level, text string, attrs ...slog.Attr) {
	r.add(p.core.log, p.core.now, refusedLine{level, text, append([]slog.Attr{slog.String("node", p.name)}, attrs...)})
}

const twoProcesses = "topogen: two processes have the name of one node"

// duplicates limits the lines about nodes for which failure detection sees two processes.
type duplicates struct {
	mu     sync.Mutex
	byName map[string]*refusals // as many as there are members
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
	r.add(log, now, refusedLine{slog.LevelError, twoProcesses, []slog.Attr{slog.String("node", name)}})
}

// report logs what is not in the log yet.
func (d *duplicates) report(log *slog.Logger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.byName)) {
		d.byName[name].report(log)
	}
}

// refusedFrame handles a frame that a correct session would not send. The session counts
// all of them (session.Stats.Malformed).
func (p *peer) refusedFrame(err error) {
	if p.slot != nil {
		p.refused(err)
		return
	}
	p.badFrames.add(p.core.log, p.core.now, refusedLine{slog.LevelWarn, "topogen: a frame of another node was refused",
		[]slog.Attr{slog.String("node", p.name), slog.Any("error", err)}})
}

// refused handles a message that a correct peer would not send. A client loses its
// connection.
func (p *peer) refused(err error) {
	if p.slot == nil {
		p.badMessages.add(p.core.log, p.core.now, refusedLine{slog.LevelError, "topogen: a message of another node was refused",
			[]slog.Attr{slog.String("node", p.name), slog.Any("error", err)}})
		return
	}
	p.badMessages.add(p.core.log, p.core.now, refusedLine{slog.LevelWarn, "topogen: a message of a client was refused, and its connection is closed",
		[]slog.Attr{slog.String("client", p.name), slog.Any("error", err)}})
	if p.core.clients.drop != nil {
		p.core.clients.drop(p.name)
	}
}
