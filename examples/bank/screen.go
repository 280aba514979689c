package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// screen prints lines, and on a terminal a block below them that is drawn repeatedly.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	block    string // the current block
}

func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	return &screen{out: f, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

const (
	erase   = "\r\x1b[J" // from the start of the line to the end of the screen
	up      = "\x1b[%dA" // by so many lines
	noWrap  = "\x1b[?7l" // a long line is cut
	newWrap = "\x1b[?7h" // back to normal
)

// print prints lines above the block.
func (s *screen) print(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(fmt.Sprintf(format, a...)+"\n", s.block)
}

// draw replaces the block; "" removes it. Without a terminal it does nothing.
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
