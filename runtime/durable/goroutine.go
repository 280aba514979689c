package durable

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"strconv"
)

// goroutineID is the number of the calling goroutine. Go has no function for it, so it is
// read from the first line of the stack: "goroutine 17 [running]:". It takes about a
// microsecond, so it is not called for each record of a replay.
func goroutineID() uint64 {
	var buf [32]byte
	line := buf[:runtime.Stack(buf[:], false)]
	digits, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("goroutine ")), []byte(" "))
	id, _ := strconv.ParseUint(string(digits), 10, 64)
	return id
}

func stack() []byte { return debug.Stack() }
