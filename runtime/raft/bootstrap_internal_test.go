package raft

import (
	"errors"
	"strings"
	"testing"
)

// TestAMemberThatLags: a node was removed and returns with an empty disk. One member does not know
// of the removal yet. The node must not stop if another member knows more.
func TestAMemberThatLags(t *testing.T) {
	for name, test := range map[string]struct {
		others uint64 // index of the other members
		led    bool   // they know the leader
		lost   bool
	}{
		"others know more":                {75, true, false},
		"others know more and no leader":  {75, false, false},
		"others know less than that node": {7, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newBootstrap(&CoreConfig{Name: "n2", ID: 22, Nonce: 5, ElectionTicks: 10, Peers: map[string]string{"n1": "a", "n2": "b", "n3": "c"}})
			before := []Member{{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}, {ID: 3, Name: "n3"}}
			var err error
			for err == nil && f.tick < 10*f.election {
				f.tick++
				f.takeAnswer("n1", 1, 7, introduction{answerTo: 5, knowsLeader: test.led, index: test.others, members: []Member{before[0], before[2]}})
				f.takeAnswer("n3", 3, 7, introduction{answerTo: 5, knowsLeader: true, index: 31, members: before})
				err = f.decide().err
			}
			if errors.Is(err, ErrLogLost) != test.lost {
				t.Errorf("it must end with ErrLogLost: %v, got %v", test.lost, err)
			}
		})
	}
}

// TestOwnAdvice checks that a group whose members another package changes does not advise
// the commands of topoctl, which cannot work there.
func TestOwnAdvice(t *testing.T) {
	const own = "start the node with an empty folder"
	for _, advice := range []string{"", own} {
		b := newBootstrap(&CoreConfig{Name: "n2", ID: 22, Nonce: 5, ElectionTicks: 10, LostLog: advice, Peers: map[string]string{"n1": "a", "n2": "b"}})
		a := &peerAnswer{groupID: 7}
		notMember := b.notMemberText("n1", a)
		a.members = []Member{{ID: 21, Name: "n2"}}
		otherDisk := b.notMemberText("n1", a)
		for _, text := range []string{notMember, otherDisk} {
			if got, want := strings.Contains(text, "topoctl"), advice == ""; got != want {
				t.Errorf("with the advice %q: %q", advice, text)
			}
		}
		if advice != "" && !strings.Contains(otherDisk, own) {
			t.Errorf("the advice is missing: %q", otherDisk)
		}
	}
}
