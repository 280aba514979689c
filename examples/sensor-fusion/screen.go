package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// Screen prints lines and, on a terminal, one status line below them that is rewritten.
type Screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	line     string // the current status line
}

var stdout = &Screen{out: os.Stdout, terminal: isTerminal(os.Stdout)}

// log returns the writer for log records. On a terminal they must not break the status
// line.
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
	erase = "\r\x1b[K"           // erases the line of the cursor
	cut   = "\x1b[?7l%s\x1b[?7h" // keeps the text in one line, however narrow the terminal is
)

// Print prints a permanent line.
func (s *Screen) Print(line string) { s.Write([]byte(line + "\n")) }

// Rewrite replaces the status line. "" removes it.
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

// Write prints permanent lines.
func (s *Screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		io.WriteString(s.out, erase)
		defer io.WriteString(s.out, s.line)
	}
	return s.out.Write(lines)
}
