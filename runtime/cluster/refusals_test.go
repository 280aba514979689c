package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestRefusalsAreLoggedRarely sends many malformed messages and frames from one node, and
// one from another one. Each node has a line of its own, and all refusals are counted.
func TestRefusalsAreLoggedRarely(t *testing.T) {
	const flood = 1000
	n := newPhaseNodes(t, "n1", "n2", "n3", "n4")
	for _, name := range n.nodes[:3] {
		n.start(name)
	}
	n.run()
	core := n.cores["n1"]
	core.now = n.now
	var out bytes.Buffer
	core.log = slog.New(slog.NewTextHandler(&out, nil))
	lines := func() (list []string) {
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "was refused") {
				list = append(list, line)
			}
		}
		out.Reset()
		return list
	}
	for name, bad := range map[string]func(p *peer){
		"message": func(p *peer) { p.refused(fmt.Errorf("%w: a test", errMalformed)) },
		"frame":   func(p *peer) { p.receive(core.now, []byte{99, 1, 2, 3}) },
	} {
		t.Run(name, func(t *testing.T) {
			n2, n3 := core.peers["n2"], core.peers["n3"]
			for range flood {
				bad(n2)
			}
			bad(n3)
			if got := lines(); len(got) != 2 || !strings.Contains(got[0], "node=n2") || !strings.Contains(got[1], "node=n3") {
				t.Fatalf("the log has %d lines, want one for n2 and one for n3:\n%s", len(got), strings.Join(got, ""))
			}
			core.now += refusalLogEvery - time.Nanosecond
			bad(n2)
			if got := lines(); len(got) != 0 {
				t.Errorf("a line comes too early:\n%s", got)
			}
			core.now += time.Nanosecond
			bad(n2)
			if got := lines(); len(got) != 1 || !strings.Contains(got[0], fmt.Sprint("times=", flood+1)) {
				t.Errorf("got the lines %q, want one line with %d refusals", got, flood+1)
			}
			bad(n2)
			bad(n2)
			core.stop(&happened{ended: true})
			if got := lines(); len(got) != 1 || !strings.Contains(got[0], "times=2") {
				t.Errorf("got the lines %q at the end, want one line with 2 refusals", got)
			}
		})
		core.now += refusalLogEvery
	}
}
