package cli

import (
	"io"
	"os"
	"strings"
)

// Streams are the streams and the environment of the process that a command may use.
type Streams struct {
	In  io.Reader
	Out io.Writer // data
	Err io.Writer // messages for people
	Env []string  // in the form of os.Environ

	Secrets []string // more of the environment, only for the program of a topology
}

// tokenVariable is the environment variable with the token of a server of durable promises. Only the
// program of a topology is a client of the server.
const tokenVariable = "TOPOGEN_DURABLE_TOKEN"

// System returns the streams of this process. It removes the token from the environment, so
// that the go command and the programs that it starts do not get it.
func System() Streams {
	s := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if value, ok := os.LookupEnv(tokenVariable); ok {
		s.Secrets = []string{tokenVariable + "=" + value}
		os.Unsetenv(tokenVariable)
	}
	s.Env = os.Environ()
	return s
}

// getenv returns the value of key. If Env has the key several times, the last value
// applies, as in package exec.
func (s Streams) getenv(key string) string {
	for i := len(s.Env) - 1; i >= 0; i-- {
		if name, value, ok := strings.Cut(s.Env[i], "="); ok && name == key {
			return value
		}
	}
	return ""
}

// color reports whether messages may be colored: stderr is a terminal, and NO_COLOR is
// not set (https://no-color.org).
func (s Streams) color() bool {
	return s.getenv("NO_COLOR") == "" && s.smart(s.Err)
}

// smart reports whether w is a terminal that understands escape sequences.
func (s Streams) smart(w io.Writer) bool {
	return s.getenv("TERM") != "dumb" && isTerminal(w)
}

// isTerminal reports whether a stream is a terminal. The null device is also a
// character device, but not a terminal.
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
