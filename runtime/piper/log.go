package piper

import (
	"log/slog"
	"sync"
	"time"
)

// logInterval is the minimum time between two log lines of one kind and processor.
// Lines in between are counted. The last of them is logged, with the count, by the end
// of the interval.
const logInterval = time.Second

// logKind is a kind of log line that may be frequent.
type logKind uint8

const (
	logFailed  logKind = iota // an instance failed
	logHandler                // a handler failed, and its instance goes on
	logStart                  // a restart failed
	logClose
	logGaveUp
	logInput   // an input is silent
	logProcess // a process was started
	logKinds
)

// repeated limits the rate of a log line.
type repeated struct {
	mu      sync.Mutex
	nextAt  time.Duration // when the next line may be logged
	skipped int           // number of lines that were not logged since
	last    line          // the last of them
	timer   *time.Timer   // logs it; nil before the first

	flushing sync.Mutex // held while the last line is logged
}

// line is a line of the log about an instance.
type line struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// logbook logs what happens to instances, and calls the observer and the recorder of a pool.
type logbook struct{ pool *Pool }

// admit counts a line. It reports whether to log it, and how many lines there were
// since the last logged one. A line that is not logged now, and not replaced by a later one, is
// logged when the interval ends.
func (b *logbook) admit(r *repeated, l line) (times int, ok bool) {
	p := b.pool
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Duration(p.clock())
	if now < r.nextAt {
		r.skipped++
		r.last = l
		if r.skipped == 1 && p.stepper == nil && !p.ended.Load() {
			r.timer = time.AfterFunc(r.nextAt-now, func() { b.flush(r, false) })
		}
		return 0, false
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	times = r.skipped + 1
	r.nextAt, r.skipped, r.last = now+logInterval, 0, line{}
	return times, true
}

// rest returns the last line that was not logged, and how many there were, if a line may be logged
// now. At the end of Run it always may.
func (r *repeated) rest(now time.Duration, atEnd bool) (l line, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now < r.nextAt && !atEnd {
		return line{}, 0 // a line was logged after the timer had fired
	}
	l, times = r.last, r.skipped
	r.last, r.skipped = line{}, 0
	if times > 0 {
		r.nextAt = now + logInterval
	}
	if r.timer != nil {
		r.timer.Stop()
	}
	return l, times
}

// flush logs the last line that was not logged. It returns when another flush has ended, so
// that nothing is logged after the end of Run.
func (b *logbook) flush(r *repeated, atEnd bool) {
	r.flushing.Lock()
	defer r.flushing.Unlock()
	if l, times := r.rest(time.Duration(b.pool.clock()), atEnd); times > 0 {
		b.write(l, times)
	}
}

// failure logs a failure of u, at most once a second for each kind and processor.
// The line has the number of failures since the last one.
func (b *logbook) failure(u *Unit, kind logKind, level slog.Level, text string, err error) {
	attrs := []slog.Attr{slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()), slog.Any("error", withoutStack(err))}
	if w := u.watch(); kind == logHandler && w != nil {
		attrs = append(attrs, slog.Int("attempt", w.attempts.last))
	}
	if e, ok := err.(*HandlerError); ok && e.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(e.Stack)))
	}
	times := 1
	if f := u.proc.faults; f != nil {
		var ok bool
		if times, ok = b.admit(&f.logged[kind], line{level, text, attrs}); !ok {
			return
		}
	}
	b.write(line{level, text, attrs}, times)
}

// limitedLine logs a line about u, at most once a second for each kind and processor.
func (b *logbook) limitedLine(u *Unit, kind logKind, l line) {
	if times, ok := b.admit(&u.proc.faults.logged[kind], l); ok {
		b.write(l, times)
	}
}

// repeatedLine logs a line about messages between nodes, at most once a second for each
// processor.
func (b *logbook) repeatedLine(r *repeated, level slog.Level, text string, attrs ...slog.Attr) {
	if times, ok := b.admit(r, line{level, text, attrs}); ok {
		b.write(line{level, text, attrs}, times)
	}
}

func (b *logbook) write(l line, times int) {
	if times > 1 {
		l.attrs = append(l.attrs, slog.Int("times", times))
	}
	b.line(l.level, l.text, l.attrs...)
}

// writeSkipped logs, at the end of Run, the failures that were not logged before.
func (b *logbook) writeSkipped() {
	for _, proc := range b.pool.processors {
		b.flush(&proc.crossLog, true)
		if proc.faults == nil {
			continue
		}
		for i := range proc.faults.logged {
			b.flush(&proc.faults.logged[i], true)
		}
	}
}
