package core

import (
	"bytes"
	"fmt"
)

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

// corrupt returns the error that the reading functions panic with. [catch] recovers it.
func corrupt(t Table, key []byte, format string, args ...any) *CorruptError {
	return &CorruptError{t, bytes.Clone(key), fmt.Sprintf(format, args...)}
}

// catch ends a panic of a reading function and stores its error. It must be deferred.
func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *CorruptError:
		*err = e
	default:
		panic(e)
	}
}
