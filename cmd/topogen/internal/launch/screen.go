package launch

import (
	"io"
	"strings"
	"sync"
)

// Escape sequences: erase the line, and turn line wrapping off and on. A wrapped status
// line could not be erased completely.
const (
	eraseLine = "\r\x1b[K"
	noWrap    = "\x1b[?7l"
	wrap      = "\x1b[?7h"
)

// eraseUp moves to the line above and erases it.
const eraseUp = "\x1b[A\x1b[K"

// screen is a terminal with a status below the output of a program: one line, or several.
// The status is shown only while the output is at the start of a line.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	status  string
	shown   bool
	above   int  // lines of the status that is shown, without the last one
	midLine bool // the program has not ended its last line
	closed  bool
}

// Write writes output of the program.
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

// set changes the status line.
func (s *screen) set(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
	s.erase()
	s.draw()
}

// close erases the status line. Later calls of set have no effect.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.closed = true
}

func (s *screen) erase() {
	if s.shown {
		io.WriteString(s.out, eraseLine+strings.Repeat(eraseUp, s.above))
		s.shown = false
	}
}

func (s *screen) draw() {
	if s.closed || s.midLine || s.status == "" {
		return
	}
	io.WriteString(s.out, noWrap+s.status+wrap)
	s.shown, s.above = true, strings.Count(s.status, "\n")
}
