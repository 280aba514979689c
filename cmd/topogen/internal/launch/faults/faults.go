// Package faults prints the failures of a running topology to stderr: one line each, and
// no more lines than a person can read.
//
// "topogen run" adds the source of this package to the package main of the programs that
// it compiles. So the package imports only the standard library, and its names start with
// topogen, to avoid collisions.
package faults

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// topogenFaults is a pool.FaultObserver, and the handler of the pool's log. The log
// already has the failures, so the observer adds restarts and recovered inputs.
type topogenFaults struct {
	gaveUp atomic.Uint64
	lines  topogenLines
	logger *slog.Logger // the default of slog at the start of the program
}

// topogenWatch must be called when the program starts.
func topogenWatch(out io.Writer) *topogenFaults {
	return &topogenFaults{lines: topogenLines{out: out}, logger: slog.Default()}
}

func (f *topogenFaults) Moved(string, int, int, int)     {}
func (f *topogenFaults) Finished(string)                 {}
func (f *topogenFaults) Failed(string, int, error)       {}
func (f *topogenFaults) InputBroken(string, int, string) {}
func (f *topogenFaults) GaveUp(string, int, error)       { f.gaveUp.Add(1) }

func (f *topogenFaults) Restarted(processor string, instance int) {
	f.lines.print(fmt.Sprintf("topogen: an instance was restarted: processor %q, instance %d", processor, instance))
}

func (f *topogenFaults) InputRecovered(_ string, instance int, edge string) {
	f.lines.print(fmt.Sprintf("topogen: an input has recovered: %s, instance %d", edge, instance))
}

// hasLogger reports whether the program has its own logger, which then gets all records.
func (f *topogenFaults) hasLogger() bool { return slog.Default() != f.logger }

// Enabled, Handle, WithAttrs and WithGroup make f a slog.Handler.
func (f *topogenFaults) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || slog.Default().Enabled(ctx, level)
}

// Handle prints a warning of the pool as one line.
func (f *topogenFaults) Handle(ctx context.Context, r slog.Record) error {
	if f.hasLogger() || r.Level < slog.LevelWarn {
		if h := slog.Default().Handler(); h.Enabled(ctx, r.Level) {
			return h.Handle(ctx, r)
		}
		return nil
	}
	f.lines.print(topogenLine(r))
	return nil
}

func (f *topogenFaults) WithAttrs(a []slog.Attr) slog.Handler {
	return slog.Default().Handler().WithAttrs(a)
}

func (f *topogenFaults) WithGroup(name string) slog.Handler {
	return slog.Default().Handler().WithGroup(name)
}

// topogenLine formats a record as one line. The error of a handler already names its
// processor and instance.
func topogenLine(r slog.Record) string {
	line, reason, place := r.Message, "", ""
	var parts []string
	r.Attrs(func(a slog.Attr) bool {
		text := a.Value.String()
		switch {
		case a.Key == "stack": // too long for a line
			place = topogenPlace(text)
		case a.Key == "error":
			reason = ": " + text
			if at := topogenPlace(text); at != "" { // the stack of a panic in another process is part of the error
				reason, _, _ = strings.Cut(reason, "\n")
				place = at
			}
			if strings.HasPrefix(text, "processor ") {
				parts = nil
			}
		case a.Key == "input":
			parts = append(parts, text)
		case a.Value.Kind() == slog.KindString:
			parts = append(parts, fmt.Sprintf("%s %q", a.Key, text))
		default:
			parts = append(parts, a.Key+" "+text)
		}
		return true
	})
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if place != "" {
		reason += " (" + place + ")"
	}
	return line + reason
}

// topogenPlace returns the file and the line of the panic in a stack, or "" if there is none.
func topogenPlace(stack string) string {
	_, frames, _ := strings.Cut(stack, "\npanic(")
	lines := strings.Split(frames, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // a function, and its place in the next line
		if !strings.HasPrefix(lines[i], "runtime.") {
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
			return place
		}
	}
	return ""
}

const (
	topogenLinesMax = 10 // per second; a terminal has about 30 lines
	topogenWidthMax = 400
)

// topogenLines writes at most topogenLinesMax lines per second to out, and counts the
// others.
type topogenLines struct {
	mu    sync.Mutex
	out   io.Writer
	ends  time.Time // end of the current second
	lines int       // lines written in this second
	more  int       // lines not written
}

func (l *topogenLines) print(line string) {
	line, _, _ = strings.Cut(line, "\n") // a stack follows
	if len(line) > topogenWidthMax {
		line = strings.ToValidUTF8(line[:topogenWidthMax], "") + "…"
	}
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar // the character may control a terminal
		}
		return r
	}, line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !now.Before(l.ends) {
		l.printMore()
		l.ends, l.lines = now.Add(time.Second), 0
	}
	if l.lines == topogenLinesMax {
		if l.more == 0 {
			time.AfterFunc(time.Until(l.ends), l.flush)
		}
		l.more++
		return
	}
	l.lines++
	_, _ = fmt.Fprintln(l.out, line) // an error of stderr cannot be reported
}

// flush reports the lines that were not written.
func (l *topogenLines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.printMore()
}

func (l *topogenLines) printMore() {
	if l.more > 0 {
		_, _ = fmt.Fprintf(l.out, "topogen: %d more lines were not printed\n", l.more)
		l.more = 0
	}
}
