package core

import "iter"

// Unblocks yields the undelivered unblock messages of an address, oldest first. After an
// error it ends.
func Unblocks(kv KV, address string) iter.Seq2[Effect, error] {
	return func(yield func(Effect, error) bool) {}
}

// UnblockAddresses yields the addresses that have undelivered unblock messages, in order.
func UnblockAddresses(kv KV) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {}
}

// Executes yields the execute message of each pending task whose delay has passed. A
// driver sends them when it starts, because execute messages are not stored.
func Executes(kv KV, now Instant) iter.Seq2[Effect, error] {
	return func(yield func(Effect, error) bool) {}
}
