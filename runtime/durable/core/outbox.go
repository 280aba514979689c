package core

import (
	"encoding/binary"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// The outbox has three tables:
//
//	Outbox        (address, settledAt, promise) -> expiry    a message, oldest first
//	OutboxSizes   address -> number of messages, expiry      of the newest messages
//	OutboxAges    (expiry, address)                          when messages are dropped
//
// Expiries are rounded to hours, so that an address has few entries in OutboxAges.
const expiryStep = 3600_000

// outboxSize is a value of OutboxSizes.
type outboxSize struct{ count, expiry int64 }

// unblock stores an unblock message and sends it. If the address has too many, the oldest
// is dropped.
func (s *step) unblock(p *promise, record *protocol.Promise, address string) {
	size := s.outboxSize(address)
	if size.count >= int64(s.config.UnblocksMax) {
		s.dropOldest(address)
		size.count--
	}
	expiry := (s.now.Wall+s.config.UnblockAge)/expiryStep*expiryStep + expiryStep
	if expiry = max(expiry, size.expiry); size.expiry != expiry {
		s.markTime(OutboxAges, expiry, address)
		size.expiry = expiry
	}
	size.count++
	s.putOutboxSize(address, size)
	s.key = outboxKey(s.key[:0], address, p.settledAt, p.id)
	s.put(Outbox, s.key, binary.AppendUvarint(s.body[:0], uint64(expiry)))
	s.send(address, protocol.Message{Unblock: record})
}

func outboxKey(b []byte, address string, settledAt int64, promise string) []byte {
	return append(appendTime(pairKey(b, address, ""), settledAt), promise...)
}

func (x *tx) outboxSize(address string) outboxSize {
	x.key = append(x.key[:0], address...)
	body := x.get(OutboxSizes, x.key)
	if body == nil {
		return outboxSize{}
	}
	d := decoder{rest: string(body)}
	size := outboxSize{d.number(), d.number()}
	if bad := d.end(); bad != "" {
		panic(corrupt(OutboxSizes, x.key, "%s", bad))
	}
	return size
}

// putOutboxSize keeps the entry when it is 0: the next message of a listener that is
// connected needs no new entry in OutboxAges then. The expiry deletes it.
func (s *step) putOutboxSize(address string, size outboxSize) {
	s.key = append(s.key[:0], address...)
	body := binary.AppendUvarint(s.body[:0], uint64(size.count))
	s.put(OutboxSizes, s.key, binary.AppendUvarint(body, uint64(size.expiry)))
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
			key := append(prefix[:len(prefix):len(prefix)], rest...)
			_, promise, ok := splitTime(rest)
			d := decoder{rest: string(body)}
			u := undelivered{key, string(promise), d.number()}
			if bad := d.end(); bad != "" || !ok {
				panic(corrupt(Outbox, key, "the entry cannot be read: %s", bad))
			}
			if !yield(u) {
				return
			}
		}
	}
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

// delivered deletes a message that a connection took.
func (s *step) delivered(op Delivered) protocol.Result {
	done := protocol.Result{Status: protocol.OK}
	head, ok := s.promiseHead(op.Promise)
	if !ok || head.state == pending {
		return done
	}
	s.key = outboxKey(s.key[:0], op.Address, head.settledAt, op.Promise)
	if s.get(Outbox, s.key) == nil {
		return done
	}
	s.kv.Delete(Outbox, s.key)
	size := s.outboxSize(op.Address)
	size.count--
	s.putOutboxSize(op.Address, size)
	return done
}

// expireMessages drops the messages of an entry of OutboxAges, at most limit. It returns
// how many it dropped, and deletes the entry if that was all.
func (s *step) expireMessages(age entry, limit int) int {
	address := age.id
	var old []undelivered
	more := false
	for u := range s.undelivered(address) {
		if u.expiry > age.at {
			continue
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
