//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// collector is a slog.Handler that keeps the records.
type collector struct {
	mu    sync.Mutex
	lines map[string][]string // by stream
	attrs string              // of the last record
	held  chan struct{}       // a line "hold" blocks until this is closed
}

func (c *collector) Enabled(context.Context, slog.Level) bool { return true }
func (c *collector) WithGroup(string) slog.Handler            { return c }
func (c *collector) WithAttrs(attrs []slog.Attr) slog.Handler { return &stream{c, attrs} }
func (c *collector) Handle(context.Context, slog.Record) error {
	return errors.New("the output does not name its process")
}

type stream struct {
	*collector
	attrs []slog.Attr
}

func (s *stream) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "hold" {
		<-s.held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.attrs[3].Value.String()
	s.lines[name] = append(s.lines[name], r.Message)
	s.collector.attrs = fmt.Sprint(s.attrs[:3])
	return nil
}

// TestOutput: all output from before the end of the process is logged.
func TestOutput(t *testing.T) {
	t.Parallel() // it waits for output
	seen := &collector{lines: make(map[string][]string), held: make(chan struct{})}
	s := settings("camera|||print-held")
	s.Logger = slog.New(seen)
	c := start(t, s)
	ask(t, c, "print hello\tthere")
	ask(t, c, "print-much")
	closed := make(chan error)
	go func() { _, err := c.Close(); closed <- err }()
	until(t, "the process ends", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.reaped
	})
	close(seen.held)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	out, errs := seen.lines["stdout"], seen.lines["stderr"]
	if out[0] != "hello\tthere" || strings.Join(errs, "") != "hello\tthere" {
		t.Errorf("%q, %q", out[0], errs)
	}
	if n := len(out) - 3001; n < 1 || out[n] != "hold" || out[n+3000] != "0123456789" {
		t.Fatalf("%d lines, the last %q", len(out), out[len(out)-1])
	}
	long := strings.Join(out[1:len(out)-3001], "")
	if long != strings.Repeat("0123456789", 1<<20) {
		t.Errorf("a line of 10 MiB has %d bytes", len(long))
	}
	if want := fmt.Sprintf("[processor=camera|||print-held instance=1 pid=%d]", c.PID()); seen.attrs != want {
		t.Errorf("%s, want %s", seen.attrs, want)
	}
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", lineMax-1)
	for name, test := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":       {"", nil},
		"lines":         {"a\n\nb\r\nc", []string{"a", "", "b", "c"}},
		"exactly":       {long + "\n" + long + "x\n", []string{long, long + "x…", ""}},
		"character cut": {long + "€\n", []string{long + "…", "€"}},
		"four bytes":    {long[2:] + "😀\n", []string{long[2:] + "…", "😀"}},
		"no character":  {long + "\x80\x80\x80\x80\n", []string{long + "\uFFFD…", "\uFFFD"}},
		"terminal":      {"\x1b[2J\a\x00\x7f\u009b1m\n", []string{"\uFFFD[2J\uFFFD\uFFFD\uFFFD\uFFFD1m"}},
		"direction":     {"a\u202eb\u2066c\u2028d\n", []string{"a\uFFFDb\uFFFDc\uFFFDd"}},
		"invalid":       {"a\xff\xfeb\n", []string{"a\uFFFDb"}},
	} {
		for way, r := range map[string]io.Reader{
			"whole":        strings.NewReader(test.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(test.in)),
		} {
			var got []string
			readLines(r, func(line string, cut bool) {
				if cut {
					line += "…"
				}
				got = append(got, line)
			})
			if !slices.Equal(got, test.want) {
				t.Errorf("%s, %s: %d lines, want %d: %.200q", name, way, len(got), len(test.want), got)
			}
		}
	}
}
