package core

import (
	"iter"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// Unblocks yields the undelivered unblock messages of an address, oldest first. It ends
// after an error, which is a [*CorruptError].
func Unblocks(kv KV, address string) iter.Seq2[Effect, error] {
	return reading(func(yield func(Effect) bool) {
		x := tx{kv: kv}
		for u := range x.undelivered(address) {
			p := x.mustPromise(u.promise, Outbox)
			if !yield(Effect{Address: address, Message: protocol.Message{Unblock: p.record()}}) {
				return
			}
		}
	})
}

// UnblockAddresses yields the addresses that begin with prefix and have undelivered
// unblock messages, in order. It ends after an error, which is a [*CorruptError].
func UnblockAddresses(kv KV, prefix string) iter.Seq2[string, error] {
	return reading(func(yield func(string) bool) {
		x := tx{kv: kv}
		for rest := range x.below(OutboxSizes, []byte(prefix)) {
			address := prefix + string(rest)
			if x.outboxSize(address).count > 0 && !yield(address) {
				return
			}
		}
	})
}

// Executes yields the execute message of each pending task that was offered before, in the
// order of the retries. A driver sends them when it starts, because execute messages are
// not stored. A task whose delay has passed since then is offered by the next [Tick]. The
// sequence ends after an error, which is a [*CorruptError].
func Executes(kv KV, now Instant) iter.Seq2[Effect, error] {
	return reading(func(yield func(Effect) bool) {
		x := tx{kv: kv}
		for key, value := range kv.Ascend(TaskTimeouts, nil) {
			_, id, ok := splitTime(key)
			if !ok {
				panic(corrupt(TaskTimeouts, key, "the key has no time"))
			}
			unseal(TaskTimeouts, key, value)
			t := x.mustTask(string(id), TaskTimeouts)
			if t.state != taskPending || !t.live(now) {
				continue
			}
			if !yield(Effect{Address: t.address, Message: protocol.Message{Execute: &protocol.TaskRef{ID: t.id, Version: t.version}}}) {
				return
			}
		}
	})
}

// Offered reports whether a task is pending at a version, as the store has it. A driver that
// kept an execute message for a while need not send it if the task has ended or was
// acquired in the meantime. The error is a [*CorruptError].
func Offered(kv KV, ref protocol.TaskRef) (offered bool, err error) {
	defer catch(&err)
	x := tx{kv: kv}
	t := x.task(ref.ID)
	return t != nil && t.state == taskPending && t.version == ref.Version, nil
}

// Waits reports whether a value of the table Tasks, as the core has put it, is a task that is
// pending.
func Waits(value []byte) bool { return len(value) > 1 && taskState(value[1]&stateBits) == taskPending }

// reading makes the panics of the reading functions the last pair of a sequence.
func reading[T any](read func(yield func(T) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		stopped := false
		err := func() (err error) {
			defer catch(&err)
			read(func(v T) bool {
				stopped = !yield(v, nil)
				return !stopped
			})
			return nil
		}()
		if err != nil && !stopped {
			var zero T
			yield(zero, err)
		}
	}
}
