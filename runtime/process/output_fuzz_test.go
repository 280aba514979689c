//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"bytes"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/allocated"
)

// FuzzLines reads any output of a process. Its lines are limited and have no control characters.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a line\nanother one"))
	f.Add(append(bytes.Repeat([]byte("ä"), lineMax), "\x1b[31m\n\xff"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocated.Within(t, 4*lineMax+20*len(b), func() {
			readLines(bytes.NewReader(b), func(text string, _ bool) {
				if len(text) > 4*lineMax || strings.ContainsAny(text, "\x1b\n\x00") {
					t.Errorf("a line is %.100q, with %d bytes", text, len(text))
				}
			})
		})
	})
}
