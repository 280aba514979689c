package core

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/topogen/topogen/runtime/durable/protocol"
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
	return fmt.Sprintf("durable: corrupt store: table %s, key %q: %s", e.Table, shown(e.Table, e.Key), e.Reason)
}

// shown returns a key as errors may show it: the address in it may have a secret.
func shown(t Table, key []byte) string {
	begin := bytes.Index(key, []byte("http"))
	if begin < 0 || t != Listeners && t != Outbox && t != OutboxSizes && t != OutboxAges {
		return string(key)
	}
	address, rest := string(key[begin:]), ""
	if i := strings.IndexByte(address, end); i >= 0 {
		address, rest = address[:i], address[i:]
	}
	return string(key[:begin]) + protocol.Redacted(address) + rest
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
