package core

import (
	"strings"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

func (s *step) registerCallback(op protocol.RegisterCallback) protocol.Result {
	awaited, awaiter := s.promise(op.Awaited), s.promise(op.Awaiter)
	if origin(awaited, op.Awaited) != origin(awaiter, op.Awaiter) {
		return fail(protocol.BadRequest, "awaited and awaiter must have the same origin")
	}
	if awaited == nil {
		return noPromise(op.Awaited)
	}
	if awaiter == nil {
		return fail(protocol.Unprocessable, "the awaiter, promise "+quote(op.Awaiter)+", does not exist")
	}
	if awaiter.flags&targeted == 0 {
		return fail(protocol.Unprocessable, "the awaiter, promise "+quote(op.Awaiter)+", has no target")
	}
	if awaited.flags&external == 0 {
		return notAwaitable(op.Awaited)
	}
	if s.projected(awaited.promiseHead).state == pending && s.projected(awaiter.promiseHead).state == pending {
		s.markPair(Callbacks, op.Awaited, op.Awaiter)
	}
	return s.shown(awaited)
}

func (s *step) registerListener(op protocol.RegisterListener) protocol.Result {
	p := s.promise(op.Awaited)
	if p == nil {
		return noPromise(op.Awaited)
	}
	if p.flags&external == 0 {
		return notAwaitable(op.Awaited)
	}
	if s.projected(p.promiseHead).state == pending {
		s.markPair(Listeners, op.Awaited, op.Address)
	}
	return s.shown(p)
}

// notAwaitable refuses to wait for a promise that has no timeout entry: its deadline
// would pass without a message.
func notAwaitable(id string) protocol.Result {
	return fail(protocol.Unprocessable, "promise "+quote(id)+" cannot be awaited, because it has neither a target nor the tag "+
		protocol.TagTimer+", "+protocol.TagExternal+" or "+protocol.TagScope+"=global")
}

// origin is the root of the call tree to which a promise belongs. It is known from the id
// alone if the promise does not exist.
func origin(p *promise, id string) string {
	if p != nil {
		if tag, ok := p.tags[protocol.TagOrigin]; ok {
			return tag
		}
		if p.origin != "" {
			return p.origin
		}
	}
	return originOf(id)
}

// originOf is the origin of a promise whose tags do not name it. The ids of calls are
// root:1.2 in newer SDKs and root.1.2 in older ones.
func originOf(id string) string {
	if root, _, ok := strings.Cut(id, ":"); ok {
		return root
	}
	root, _, _ := strings.Cut(id, ".")
	return root
}
