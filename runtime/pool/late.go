package pool

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/topogen/topogen/runtime/internal/race"
	"github.com/topogen/topogen/runtime/queue"
)

// lateSend is told of a message that is sent with a sender whose call has ended: by
// a goroutine that a handler has started, or by another instance that was given the
// sender. Nobody publishes it before the sender's next call, if there is one.
func (p *Pool) lateSend(l *Link, h *queue.Head) {
	p.edges[h.Index()].late.Add(1)
	p.lateOnce.Do(func() {
		u, stack := l.out.unit, debug.Stack()
		p.say(slog.LevelError, "topogen: a message was sent after the call that the sender was for; a sender may be used in its call and on its goroutine only",
			slog.String("processor", u.proc.Name), slog.Int("instance", u.Index()), slog.String("edge", p.edgeName(h.Index())), slog.String("stack", string(stack)))
		if p.stepper != nil || race.Enabled || isTest() {
			p.finish(fmt.Errorf("%w: processor %q, instance %d, edge %s\n%s", ErrLateSend, u.proc.Name, u.Index(), p.edgeName(h.Index()), stack))
		}
	})
}

// isTest reports whether the program was built by go test.
var isTest = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && strings.HasSuffix(info.Path, ".test")
})
