package pool

import (
	"log/slog"
	"sync"
	"time"
)

// sayEvery is how often a processor logs the same kind of failure at most. What
// comes more often is counted.
const sayEvery = time.Second

// sayKind is a kind of failure that may come often.
type sayKind uint8

const (
	sayFailed  sayKind = iota // an instance
	sayHandler                // a handler, and its instance goes on
	sayStart                  // a restart
	sayClose
	sayGaveUp
	sayKinds
)

// repeated is a line of the log that may come often.
type repeated struct {
	mu    sync.Mutex
	again time.Duration // when it may be logged again
	left  int           // times that it was not logged since
	level slog.Level
	text  string
}

// due counts a line. It reports whether to log it, and how often it came since the
// last one.
func (r *repeated) due(now time.Duration, level slog.Level, text string) (times int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.level, r.text = level, text; now < r.again {
		r.left++
		return 0, false
	}
	times = r.left + 1
	r.again, r.left = now+sayEvery, 0
	return times, true
}

// sayOften logs a failure of u, at most once a second for each kind and processor,
// with how often it came since.
func (p *Pool) sayOften(u *Unit, kind sayKind, level slog.Level, text string, err error) {
	times := 1
	if f := u.proc.faults; f != nil {
		var ok bool
		if times, ok = f.said[kind].due(time.Duration(p.clock()), level, text); !ok {
			return
		}
	}
	attrs := []slog.Attr{slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()), slog.Any("error", withoutStack(err))}
	if w := u.watch(); kind == sayHandler && w != nil {
		attrs = append(attrs, slog.Int("attempt", w.attempted))
	}
	if e, ok := err.(*HandlerError); ok && e.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(e.Stack)))
	}
	if times > 1 {
		attrs = append(attrs, slog.Int("times", times))
	}
	p.say(level, text, attrs...)
}

// sayRest logs, at the end, how often failures came that were not logged.
func (p *Pool) sayRest() {
	for _, proc := range p.processors {
		if proc.faults == nil {
			continue
		}
		for i := range proc.faults.said {
			r := &proc.faults.said[i]
			r.mu.Lock()
			left, level, text := r.left, r.level, r.text
			r.left = 0
			r.mu.Unlock()
			if left > 0 {
				p.say(level, text, slog.String("processor", proc.Name), slog.Int("times", left))
			}
		}
	}
}
