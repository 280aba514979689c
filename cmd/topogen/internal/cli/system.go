package cli

import (
	"io"
	"os"
	"strings"
)

// Streams is what a command has of the process that it runs in.
type Streams struct {
	In  io.Reader
	Out io.Writer // data
	Err io.Writer // words
	Env []string  // as os.Environ has it
}

// System returns the streams of this process.
func System() Streams {
	return Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
}

// getenv returns the last value that the environment gives to key, as exec does.
func (s Streams) getenv(key string) string {
	for i := len(s.Env) - 1; i >= 0; i-- {
		if name, value, ok := strings.Cut(s.Env[i], "="); ok && name == key {
			return value
		}
	}
	return ""
}

// color reports whether words may be coloured: they go to a terminal and nobody
// asked otherwise (https://no-color.org).
func (s Streams) color() bool {
	return s.getenv("NO_COLOR") == "" && s.smart(s.Err)
}

// smart reports whether w is a terminal that understands escape sequences.
func (s Streams) smart(w io.Writer) bool {
	return s.getenv("TERM") != "dumb" && isTerminal(w)
}

// isTerminal reports whether w or r is a terminal. The null device is a
// character device as well.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
