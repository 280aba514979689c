package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/cluster/session"
	"github.com/topogen/topogen/runtime/member"
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
	for name, bad := range map[string]func(p *nodePeer){
		"message": func(p *nodePeer) { p.refused(fmt.Errorf("%w: a test", errMalformed)) },
		"frame":   func(p *nodePeer) { p.receive(core.now, []byte{99, 1, 2, 3}) },
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

// TestRefusalsOfClients: clients with one certificate share a line of the log, whatever names they choose.
func TestRefusalsOfClients(t *testing.T) {
	const flood = 1000
	core := coreOf(t, everywhere)
	var out bytes.Buffer
	core.log = slog.New(slog.NewTextHandler(&out, nil))
	core.clients.owner = func(name string) string { return strings.TrimRight(name, "0123456789") }
	refuse := func(name string) {
		p, err := core.clients.newPeer(clientPrefix + name)
		if err != nil {
			t.Fatal(err)
		}
		p.receive(core.now, []byte{99, 1, 2, 3})
		p.setReachable(core.now, false)
		core.clients.forgetOld(core.now)
	}
	for i := range flood {
		refuse(fmt.Sprint("eve", i))
	}
	refuse("ann1")
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "client:eve0") || !strings.Contains(got, "client:ann1") {
		t.Errorf("got the lines %q, want one for each certificate", got)
	}
	out.Reset()
	core.now += refusalLogEvery
	core.clients.forgetOld(core.now)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, fmt.Sprint("times=", flood-1)) {
		t.Errorf("got the lines %q after a minute, want one with %d refusals", got, flood-1)
	}
	core.now += refusalLogEvery
	core.clients.forgetOld(core.now)
	if n := len(core.clients.refusals); n != 0 {
		t.Errorf("the refusals of %d certificates are remembered", n)
	}
}

// TestEventsOfPeersAreLoggedRarely repeats the events that a node causes whose process fails
// and is started again all the time. The first one of each kind is logged at once, and the
// others are counted.
func TestEventsOfPeersAreLoggedRarely(t *testing.T) {
	const loop = 1000
	n := newPhaseNodes(t, "n1", "n2", "n3")
	for _, name := range n.nodes {
		n.start(name)
	}
	n.run()
	core := n.cores["n1"]
	core.now = n.now
	for name, event := range map[string]session.Event{
		"another node was restarted":              session.PeerRestarted{},
		"this node does not accept the other one": session.Refused{Text: "another plan"},
		"the other node does not accept this one": session.Refused{ByPeer: true, Text: "another plan"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			core.log = slog.New(slog.NewTextHandler(&out, nil))
			for i := range loop {
				if core.peers["n2"].event(event); i == 0 && strings.Count(out.String(), "node=n2") != 1 {
					t.Errorf("the first event is not logged: %q", out.String())
				}
			}
			if got := strings.Count(out.String(), "\n"); got != 1 {
				t.Errorf("%d lines, want 1", got)
			}
			out.Reset()
			core.now += refusalLogEvery
			core.peers["n2"].event(event)
			if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, fmt.Sprint("times=", loop)) {
				t.Errorf("after a minute: got %q, want one line with %d events", got, loop)
			}
		})
	}
}

// TestDuplicatesAreLoggedRarely repeats what failure detection says about two processes.
func TestDuplicatesAreLoggedRarely(t *testing.T) {
	var out bytes.Buffer
	n := &Node{log: slog.New(slog.NewTextHandler(&out, nil)), began: time.Now()}
	for range 100 {
		for _, name := range []string{"n2", "n3"} {
			n.observe(member.Event{Kind: member.EventDuplicate, Member: member.Member{Name: name}})
		}
	}
	if got := out.String(); strings.Count(got, "\n") != 2 {
		t.Errorf("got the lines %q, want one for each node", got)
	}
	out.Reset()
	n.duplicates.report(n.log)
	if got := out.String(); strings.Count(got, "times=99") != 2 {
		t.Errorf("got the lines %q at the end, want one for each node with 99 events", got)
	}
}
