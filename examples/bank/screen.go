package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// screen prints lines that stay and, on a terminal, a block below them that is drawn
// again and again.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	block    string // that stands there
}

func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	return &screen{out: f, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

const (
	erase   = "\r\x1b[J" // all from the line's beginning on
	up      = "\x1b[%dA" // so many lines
	noWrap  = "\x1b[?7l" // a line stays one line, however narrow the terminal
	newWrap = "\x1b[?7h" // back to normal
)

// print prints lines that stay.
func (s *screen) print(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(fmt.Sprintf(format, a...)+"\n", s.block)
}

// draw puts a block of lines in the place of the one before; "" takes it away. It
// does nothing where there is no terminal.
func (s *screen) draw(block string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		s.replace("", block)
	}
}

func (s *screen) replace(lines, block string) {
	if !s.terminal {
		io.WriteString(s.out, lines)
		return
	}
	var b strings.Builder
	if n := strings.Count(s.block, "\n"); n > 0 {
		fmt.Fprintf(&b, up, n)
	}
	b.WriteString(erase + lines)
	if s.block = block; block != "" {
		b.WriteString(noWrap + block + newWrap)
	}
	io.WriteString(s.out, b.String())
}
