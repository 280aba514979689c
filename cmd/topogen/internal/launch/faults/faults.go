// Package faults says what becomes of instances and inputs while a topology runs:
// a line each on stderr, and not more of them than a person can read.
//
// Its text is laid over programs that topogen run compiles, as a file of their
// package main. So it imports the standard library alone, and its names begin
// with topogen, as those of nobody else do.
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

// topogenFaults is a pool.FaultObserver, and the handler of the pool's log. The
// log tells of failures already, so what is observed are restarts and inputs that
// come back.
type topogenFaults struct {
	gaveUp atomic.Uint64
	lines  topogenLines
	logger *slog.Logger // slog's default when the program began
}

// topogenWatch is to be called when the program begins.
func topogenWatch(out io.Writer) *topogenFaults {
	return &topogenFaults{lines: topogenLines{out: out}, logger: slog.Default()}
}

func (f *topogenFaults) Moved(string, int, int, int)     {}
func (f *topogenFaults) Finished(string)                 {}
func (f *topogenFaults) Failed(string, int, error)       {}
func (f *topogenFaults) InputBroken(string, int, string) {}
func (f *topogenFaults) GaveUp(string, int, error)       { f.gaveUp.Add(1) }

func (f *topogenFaults) Restarted(processor string, instance int) {
	f.lines.say(fmt.Sprintf("topogen: an instance was restarted: processor %q, instance %d", processor, instance))
}

func (f *topogenFaults) InputRecovered(_ string, instance int, edge string) {
	f.lines.say(fmt.Sprintf("topogen: an input has recovered: %s, instance %d", edge, instance))
}

// own reports whether the program has set up a log of its own. That gets all.
func (f *topogenFaults) own() bool { return slog.Default() != f.logger }

// Enabled makes f a slog.Handler, as Handle, WithAttrs and WithGroup do.
func (f *topogenFaults) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || slog.Default().Enabled(ctx, level)
}

// Handle says the pool's warnings in lines of ours.
func (f *topogenFaults) Handle(ctx context.Context, r slog.Record) error {
	if f.own() || r.Level < slog.LevelWarn {
		if h := slog.Default().Handler(); h.Enabled(ctx, r.Level) {
			return h.Handle(ctx, r)
		}
		return nil
	}
	f.lines.say(topogenLine(r))
	return nil
}

func (f *topogenFaults) WithAttrs(a []slog.Attr) slog.Handler {
	return slog.Default().Handler().WithAttrs(a)
}

func (f *topogenFaults) WithGroup(name string) slog.Handler {
	return slog.Default().Handler().WithGroup(name)
}

// topogenLine is a record as one line. An error of a handler names its processor
// and instance itself.
func topogenLine(r slog.Record) string {
	line, why := r.Message, ""
	var parts []string
	r.Attrs(func(a slog.Attr) bool {
		text := a.Value.String()
		switch {
		case a.Key == "stack": // it is long, and for logs
		case a.Key == "error":
			why = ": " + text
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
	return line + why
}

const (
	topogenLinesMost = 10 // in a second; a terminal has some 30
	topogenWidthMost = 400
)

// topogenLines are written to out, so many a second at most. The others are
// counted.
type topogenLines struct {
	mu   sync.Mutex
	out  io.Writer
	ends time.Time // of the second
	said int       // lines in it
	more int       // that were not written
}

func (l *topogenLines) say(line string) {
	line, _, _ = strings.Cut(line, "\n") // the rest is a stack
	if len(line) > topogenWidthMost {
		line = strings.ToValidUTF8(line[:topogenWidthMost], "") + "…"
	}
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar // a terminal might obey it
		}
		return r
	}, line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !now.Before(l.ends) {
		l.sayMore()
		l.ends, l.said = now.Add(time.Second), 0
	}
	if l.said == topogenLinesMost {
		if l.more == 0 {
			time.AfterFunc(time.Until(l.ends), l.flush)
		}
		l.more++
		return
	}
	l.said++
	_, _ = fmt.Fprintln(l.out, line) // who would be told of an error
}

// flush says what is left to say.
func (l *topogenLines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sayMore()
}

func (l *topogenLines) sayMore() {
	if l.more > 0 {
		_, _ = fmt.Fprintf(l.out, "topogen: and %d more\n", l.more)
		l.more = 0
	}
}
