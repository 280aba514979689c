package core

import "fmt"

// A CorruptError says that an entry of the store is not as the core wrote it. After a
// [protocol.Result] with this error as Fault the transaction must be rolled back, because
// the step may have made a part of its changes.
type CorruptError struct {
	Table  Table
	Key    []byte
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("durable: corrupt store: table %s, key %q: %s", e.Table, e.Key, e.Reason)
}
