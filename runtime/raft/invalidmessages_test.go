package raft_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"testing"
)

// TestNonsenseIsLoggedOnce: many invalid messages of one sender are logged once, so that they do not
// fill the log.
func TestNonsenseIsLoggedOnce(t *testing.T) {
	w := calmWorld(t, 12)
	n := w.nodes[0]
	var log bytes.Buffer
	n.raft.LogTo(slog.NewTextHandler(&log, nil))
	noise := rand.NewChaCha8([32]byte{})
	for range 20 {
		payloads := make([][]byte, 500)
		for i := range payloads {
			payloads[i] = make([]byte, 40)
			_, _ = noise.Read(payloads[i]) // never fails
		}
		n.receive("evil", payloads)
		w.advance(tickTime)
	}
	if lines := bytes.Count(log.Bytes(), []byte("are not a message")); lines != 1 {
		t.Errorf("10,000 invalid messages must be logged in 1 line, got %d", lines)
	}
}
