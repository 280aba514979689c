package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// Screen prints lines and, on a terminal, one more below them that is rewritten.
type Screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	line     string // that stands there to be rewritten
}

var stdout = &Screen{out: os.Stdout, terminal: isTerminal(os.Stdout)}

// log is where to log to: on the same terminal not into that line.
func (s *Screen) log() io.Writer {
	if s.terminal && isTerminal(os.Stderr) {
		return s
	}
	return os.Stderr
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const (
	erase = "\r\x1b[K"           // takes away the line that the cursor is in
	cut   = "\x1b[?7l%s\x1b[?7h" // keeps a line in one line, however narrow the terminal
)

// Print prints a line that stays.
func (s *Screen) Print(line string) { s.Write([]byte(line + "\n")) }

// Rewrite puts a line in the place of the one before. "" takes it away.
func (s *Screen) Rewrite(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		s.line = ""
		if line != "" {
			s.line = fmt.Sprintf(cut, line)
		}
		io.WriteString(s.out, erase+s.line)
	}
}

// Write prints lines that stay.
func (s *Screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		io.WriteString(s.out, erase)
		defer io.WriteString(s.out, s.line)
	}
	return s.out.Write(lines)
}
