package errtop

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"strings"
)

const (
	stackMax   = 32 // frames; the innermost are the most useful
	recoverMax = 16 // frames between a recover and the panicking function: a few of package runtime
	panicFunc  = "runtime.gopanic"
	// piperPrefix is the prefix of functions that run instances. Below a handler they
	// only show how a worker got the instance, which varies.
	piperPrefix = "github.com/topogen/topogen/runtime/piper."
)

// Stack is a stack of program counters as returned by runtime.Callers, with the innermost
// call first.
type Stack []uintptr

// Frames iterates over the functions of the stack, the innermost call first.
func (s Stack) Frames() iter.Seq[runtime.Frame] {
	return func(yield func(runtime.Frame) bool) {
		frames := runtime.CallersFrames(s)
		for more := len(s) > 0; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if f.PC != 0 && !yield(f) {
				return
			}
		}
	}
}

// String has two lines for each call: its function and its position.
func (s Stack) String() string {
	var b strings.Builder
	for f := range s.Frames() {
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
	}
	return b.String()
}

// call is one call of a stack, as text.
type call struct{ function, place string }

// trace returns the stack as part of a record; each line begins with a line break.
func (s Stack) trace() string {
	var list []call
	for f := range s.Frames() {
		if f.Function == panicFunc {
			f.Function = "panic" // the name in debug.Stack
		}
		list = append(list, call{f.Function, fmt.Sprintf("%s:%d", f.File, f.Line)})
	}
	return traceOf(list)
}

func traceOf(list []call) string {
	var b strings.Builder
	for _, c := range trimmed(list) {
		b.WriteString("\n" + c.function + "\n\t" + c.place)
	}
	return b.String()
}

// fromPanic removes the calls between a recover and its panic. Without a panic it removes
// nothing.
func fromPanic(pcs []uintptr) []uintptr {
	name := func(pc uintptr) string {
		if f := runtime.FuncForPC(pc - 1); f != nil {
			return f.Name()
		}
		return ""
	}
	for i, pc := range pcs {
		if name(pc) != panicFunc {
			continue
		}
		rest := pcs[i+1:]
		for len(rest) > 1 && strings.HasPrefix(name(rest[0]), "runtime.") { // functions that raise run-time panics, such as nil dereferences
			rest = rest[1:]
		}
		return rest
	}
	return pcs
}

// traceOfPanic converts the output of debug.Stack in a deferred function to the text that
// program counters give: without goroutines, arguments, offsets and the calls after the
// panic. Lines of another form are kept.
func traceOfPanic(stack []byte) string {
	var list []call
	for line := range bytes.Lines(stack) {
		text := strings.TrimRight(string(line[:min(len(line), reasonMax)]), "\r\n")
		place, isPlace := strings.CutPrefix(text, "\t")
		switch {
		case isPlace && len(list) > 0 && list[len(list)-1].place == "":
			list[len(list)-1].place = plain(withoutOffset(place))
		case text == "", strings.HasPrefix(text, "goroutine "), strings.HasPrefix(text, "...additional frames"):
		default:
			list = append(list, call{function: plain(withoutArguments(text))})
		}
	}
	for i, c := range list {
		if c.function == "panic" {
			list = list[i+1:]
			for len(list) > 1 && strings.HasPrefix(list[0].function, "runtime.") {
				list = list[1:]
			}
			break
		}
	}
	for i, c := range list {
		if strings.HasPrefix(c.function, "created by ") {
			list = list[:i]
			break
		}
	}
	return traceOf(list[:min(len(list), stackMax)])
}

// withoutOffset turns "main.go:12 +0x1d" into "main.go:12".
func withoutOffset(place string) string {
	if i := strings.LastIndex(place, " +0x"); i >= 0 {
		return place[:i]
	}
	return place
}

// withoutArguments turns "main.(*T).M(0xc000…, 0x3)" into "main.(*T).M".
func withoutArguments(function string) string {
	if i := strings.LastIndexByte(function, '('); i > 0 && strings.HasSuffix(function, ")") {
		return function[:i]
	}
	return function
}

// trimmed removes the outermost calls of the runtime and the pool, unless there are no
// other calls.
func trimmed(list []call) []call {
	for n := len(list); n > 0; n-- {
		f := list[n-1].function
		if !strings.HasPrefix(f, "runtime.") && !strings.HasPrefix(f, piperPrefix) {
			return list[:n]
		}
	}
	return list
}
