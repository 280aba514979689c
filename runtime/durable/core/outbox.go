package core

import (
	"github.com/topogen/topogen/runtime/durable/protocol"
	"github.com/topogen/topogen/runtime/wire"
)

// The outbox has three tables:
//
//	Outbox        (address, sequence) -> expiry, promise     a message
//	OutboxSizes   address -> outboxSize
//	OutboxAges    (expiry, address)                          when messages are dropped
//
// The messages of an address are numbered, so they are in the order in which they were
// sent first. Expiries are rounded to hours, so that an address has few entries in
// OutboxAges. They do not decrease within an address. They compare with Instant.Run: a clock
// that is ahead, or a server that was down, drops no message.
const expiryStep = 3600_000

// outboxSize is a value of OutboxSizes: how many messages an address has, the expiry of
// the newest, and the sequence number of the next.
type outboxSize struct{ count, expiry, next int64 }

// unblock stores an unblock message and sends it. If the address has too many, the oldest
// is dropped.
func (s *step) unblock(record *protocol.Promise, address string) {
	size := s.outboxSize(address)
	if size.count >= int64(s.config.UnblocksMax) {
		s.dropOldest(address)
		size.count--
	}
	expiry := (s.now.Run+s.config.UnblockAge)/expiryStep*expiryStep + expiryStep
	if expiry = max(expiry, size.expiry); size.expiry != expiry {
		s.markTime(OutboxAges, expiry, address)
		size.expiry = expiry
	}
	s.key = outboxKey(s.key[:0], address, size.next)
	s.put(Outbox, s.key, append(wire.AppendUint(s.body[:0], uint64(expiry)), record.ID...))
	size.count++
	size.next++
	s.putOutboxSize(address, size)
	s.send(address, protocol.Message{Unblock: record})
}

func outboxKey(b []byte, address string, sequence int64) []byte {
	return appendTime(pairKey(b, address, ""), sequence)
}

func (x *tx) outboxSize(address string) outboxSize {
	x.key = append(x.key[:0], address...)
	body := x.get(OutboxSizes, x.key)
	if body == nil {
		return outboxSize{}
	}
	d := decoder{rest: string(body)}
	size := outboxSize{d.number(), d.number(), d.number()}
	if bad := d.end(); bad != "" {
		panic(corrupt(OutboxSizes, x.key, "%s", bad))
	}
	return size
}

// putOutboxSize keeps the entry when the count is 0: the next message of a listener that is
// connected needs no new entry in OutboxAges then. The expiry deletes it.
func (s *step) putOutboxSize(address string, size outboxSize) {
	s.key = append(s.key[:0], address...)
	body := wire.AppendUint(s.body[:0], uint64(size.count))
	body = wire.AppendUint(body, uint64(size.expiry))
	s.put(OutboxSizes, s.key, wire.AppendUint(body, uint64(size.next)))
}

// undelivered is an entry of Outbox.
type undelivered struct {
	key     []byte
	promise string
	expiry  int64
}

// undelivered yields the entries of an address, oldest first.
func (x *tx) undelivered(address string) func(yield func(undelivered) bool) {
	return func(yield func(undelivered) bool) {
		prefix := pairKey(nil, address, "")
		for rest, body := range x.below(Outbox, prefix) {
			if !yield(readUndelivered(append(prefix[:len(prefix):len(prefix)], rest...), body)) {
				return
			}
		}
	}
}

func readUndelivered(key, body []byte) undelivered {
	d := decoder{rest: string(body)}
	u := undelivered{key: key, expiry: d.number()}
	if u.promise = d.rest; d.bad != "" || badID("promise", u.promise) != "" {
		panic(corrupt(Outbox, key, "the entry has no promise"))
	}
	return u
}

func (s *step) dropOldest(address string) {
	var oldest undelivered
	for oldest = range s.undelivered(address) {
		break
	}
	if oldest.key == nil {
		panic(corrupt(OutboxSizes, []byte(address), "counts messages that do not exist"))
	}
	s.drop(address, oldest)
}

// drop deletes a message that was not delivered, and reports it.
func (s *step) drop(address string, u undelivered) {
	s.kv.Delete(Outbox, u.key)
	p := s.mustPromise(u.promise, Outbox)
	s.effects = append(s.effects, Effect{Address: address, Message: protocol.Message{Unblock: p.record()}, Dropped: true})
}

// delivered deletes a message that a connection took. It looks at the older messages of
// the address; a driver that delivers them in their order has deleted those already.
func (s *step) delivered(op Delivered) protocol.Result {
	var taken undelivered
	for u := range s.undelivered(op.Address) {
		if u.promise == op.Promise {
			taken = u
			break
		}
	}
	if taken.key != nil {
		s.kv.Delete(Outbox, taken.key)
		size := s.outboxSize(op.Address)
		size.count--
		s.putOutboxSize(op.Address, size)
	}
	return protocol.Result{Status: protocol.OK}
}

// expireMessages drops the messages of an entry of OutboxAges, at most limit. It returns
// how many it dropped, and deletes the entry if that was all.
func (s *step) expireMessages(age entry, limit int) int {
	address := age.id
	var old []undelivered
	more := false
	for u := range s.undelivered(address) {
		if u.expiry > age.at {
			break
		}
		if more = len(old) == limit; more {
			break
		}
		old = append(old, u)
	}
	for _, u := range old {
		s.drop(address, u)
	}
	size := s.outboxSize(address)
	size.count -= int64(len(old))
	if !more {
		s.unmarkTime(OutboxAges, age.at, address)
	}
	if size.count == 0 && size.expiry <= age.at {
		s.key = append(s.key[:0], address...)
		s.kv.Delete(OutboxSizes, s.key)
	} else if len(old) > 0 {
		s.putOutboxSize(address, size)
	}
	return len(old)
}
