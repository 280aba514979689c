package launch

import (
	"io"
	"sync"
)

// Escape sequences: to the line's start and erase it; without and with a line
// break at the right border, which would leave the rest of a long line behind.
const (
	eraseLine = "\r\x1b[K"
	noWrap    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
)

// screen is a terminal with a line of status below what a program writes. It is
// shown only where a line of the program has ended.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	status  string
	shown   bool
	midLine bool // the program has begun a line
	closed  bool
}

// Write writes what the program does.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	n, err := s.out.Write(p)
	if n > 0 {
		s.midLine = p[n-1] != '\n'
	}
	s.draw()
	return n, err
}

// set changes the status.
func (s *screen) set(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
	s.erase()
	s.draw()
}

// close erases the status for good.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.closed = true
}

func (s *screen) erase() {
	if s.shown {
		io.WriteString(s.out, eraseLine)
		s.shown = false
	}
}

func (s *screen) draw() {
	if s.closed || s.midLine || s.status == "" {
		return
	}
	io.WriteString(s.out, noWrap+s.status+wrap)
	s.shown = true
}
