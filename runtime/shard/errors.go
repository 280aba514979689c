package shard

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrConfiguration: a configuration does not give each shard to one worker.
	// The error says which shard.
	ErrConfiguration = errors.New("shard: not a configuration")
	// ErrGoexit: a method of the controller ended its goroutine.
	ErrGoexit = errors.New("the method ended its goroutine (runtime.Goexit, perhaps by t.FailNow)")
)

// Error is the error, or the panic, of a method of a controller.
type Error struct {
	Method string // "ProcessShard", "PreProcess", "OnSwitch", "InitialSharding", "Resharding"
	Worker int    // -1 where none is involved
	Shard  int    // likewise
	Err    error
	Stack  []byte // of a panic, else nil
}

// none is where no worker or shard is involved.
const none = -1

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("shard: " + e.Method)
	if e.Shard >= 0 {
		fmt.Fprintf(&b, " of shard %d", e.Shard)
	}
	if e.Worker >= 0 {
		fmt.Fprintf(&b, " on worker %d", e.Worker)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Stack != nil {
		fmt.Fprintf(&b, "\n%s", e.Stack)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// is reports whether e is an error, and no panic, that matches target.
func (e *Error) is(target error) bool {
	return e != nil && e.Stack == nil && errors.Is(e.Err, target)
}
