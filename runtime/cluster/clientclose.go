package cluster

import (
	"errors"

	"github.com/topogen/topogen/runtime/piper/border"
)

// errGaveUp is why a client that is closed drops the request of a caller that waits no longer.
var errGaveUp = errors.New("the caller has given up")

// giveUp drops the messages of a client that is closed if they are requests whose callers wait
// no longer. Otherwise Close would wait for handlers, or for nodes that cannot be reached, and
// fail because of replies that no caller would get. A request that comes before another message
// of its pair is not dropped, because its node handles it before that message. A request that
// has its reply is confirmed soon, and dropped only if its node cannot be reached.
func (c *clientCore) giveUp() {
	for p := range c.nodes() {
		for _, pair := range p.out {
			if pair.kept == nil {
				continue
			}
			if e, all := pair.to.(*castEnd); all {
				e.cast.giveUp(c.core)
			} else if n := pair.unsettled(); n > 0 && pair.outlet.NobodyWaits(n, p.isLost()) {
				pair.expire(c.now, errGaveUp)
			}
		}
	}
}

// giveUp does the same for messages to other nodes along one link.
func (c *cast) giveUp(core *core) {
	unsettled, lost := map[*border.Outlet]int{c.outlet: 0}, true
	for _, k := range c.kept {
		unsettled[c.outlet] += k.Messages
	}
	for _, end := range c.ends {
		lost = lost && (len(end.kept) == 0 || end.pair.peer.isLost())
		for _, part := range end.kept {
			if part.chunk.isForOne() {
				unsettled[part.chunk.outlet] += part.left
			}
		}
	}
	for o, n := range unsettled {
		if !o.NobodyWaits(n, lost) {
			return
		}
	}
	for _, end := range c.ends {
		end.pair.expire(core.now, errGaveUp)
	}
}
