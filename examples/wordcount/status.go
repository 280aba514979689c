package main

import (
	"fmt"
	"os"
	"time"
)

// showStatus shows a status line on stderr while the topology runs, if stderr is a
// terminal. It returns a function that removes the line.
func showStatus(topology *Topology, start time.Time) (hide func()) {
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	done, hidden := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(hidden)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				// A snapshot may be taken at any time and does not slow the topology down.
				edges := topology.Snapshot().Edges
				fmt.Fprintf(os.Stderr, "\r\x1b[K%v  %d chunks  %d words",
					time.Since(start).Round(100*time.Millisecond),
					edges[EdgeFeedSplitterChunk].Received, edges[EdgeSplitterCounterWord].Received)
			case <-done:
				fmt.Fprint(os.Stderr, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { close(done); <-hidden }
}
