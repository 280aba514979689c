package piper

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/queue"
)

// sentLate handles a message of the link that is sent after the handler call of its sender had
// ended, by a goroutine that a handler started or by another instance that got the
// sender. The next call that sends along the same link publishes the message. If there
// is none, it counts as queued when Run has ended.
func (l *Link) sentLate(h *queue.Head) {
	p := l.out.unit.proc.pool
	if p.lateSends != nil {
		l.sentLateOutside()
		return
	}
	p.edges[h.Index()].late.Add(1)
	p.lateOnce.Do(func() {
		u, stack := l.out.unit, debug.Stack()
		p.logbook.line(slog.LevelError, lateText,
			slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()), slog.String("edge", p.edgeName(h.Index())), slog.String("stack", string(stack)))
		if p.stepper != nil || isStrict() {
			p.lifecycle.finish(fmt.Errorf("%w: processor %q, instance %d, edge %s\n%s", ErrLateSend, u.proc.Name, u.Index(), p.edgeName(h.Index()), stack))
		}
	})
}

const lateText = "topogen: a message was sent after the handler call of its sender had ended; use a sender only within its call and on the goroutine of the call"

// sentLateOutside is sentLate in the process of an isolated instance. If a late send
// must fail Run, the process panics, and its parent gets the text. Otherwise the
// message is dropped.
func (l *Link) sentLateOutside() {
	p := l.out.unit.proc.pool
	p.lateSends.Add(1)
	if isStrict() {
		panic(ErrLateSend)
	}
	p.lateOnce.Do(func() {
		slog.Error(lateText+"; a message from an isolated instance is dropped", slog.String("stack", string(debug.Stack())))
	})
}

func isStrict() bool { return race.Enabled || isTest() }

// isTest reports whether the program was built by go test.
var isTest = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && strings.HasSuffix(info.Path, ".test")
})
