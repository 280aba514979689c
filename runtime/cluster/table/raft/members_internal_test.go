package raft

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/raft"
)

// member parses NAME, NAME! (silent) and (NAME) (learner). NAME may be NAME@ADDRESS.
func member(text string) (s raft.MemberStatus) {
	s.Active = !strings.HasSuffix(text, "!")
	text = strings.TrimSuffix(text, "!")
	s.Learner = strings.HasPrefix(text, "(")
	s.Name, s.Address, _ = strings.Cut(strings.Trim(text, "()"), "@")
	for _, b := range []byte(s.Name) {
		s.ID = s.ID<<8 | uint64(b)
	}
	return s
}

func list(text string) (members []raft.MemberStatus) {
	for _, one := range strings.Fields(text) {
		members = append(members, member(one))
	}
	return members
}

// TestChangesOfMembers feeds a leader n1 with observations, one second apart.
func TestChangesOfMembers(t *testing.T) {
	type step struct{ members, gone, want string } // of the nodes that are gone, +NAME has left
	for name, steps := range map[string][]step{
		"nothing to do": {{"n1 n2 n3 (n4)", "", ""}},
		"a crashed voter is not gone": {
			{"n1 n2! n3 (n4)", "", ""}, {"n1 n2! n3 (n4)", "", ""}, {"n1 n2! n3 (n4)", "", ""}, {"n1 n2! n3 (n4)", "", ""},
		},
		"a voter that is gone is replaced after three seconds": {
			{"n1 n2! n3 (n4)", "n2", ""}, {"n1 n2! n3 (n4)", "n2", ""}, {"n1 n2! n3 (n4)", "n2", ""},
			{"n1 n2! n3 (n4)", "n2", "promote n4, remove n2"}, {"n1 n4 n3", "n2", ""},
		},
		"a sign of life starts the time again": {
			{"n1 n2! n3 (n4)", "n2", ""}, {"n1 n2! n3 (n4)", "n2", ""}, {"n1 n2 n3 (n4)", "n2", ""},
			{"n1 n2! n3 (n4)", "n2", ""}, {"n1 n2! n3 (n4)", "n2", ""}, {"n1 n2! n3 (n4)", "n2", ""}, {"n1 n2! n3 (n4)", "n2", "promote n4, remove n2"},
		},
		"without a learner the voter remains": {
			{"n1 n2! n3", "n2", ""}, {"n1 n2! n3", "n2", ""}, {"n1 n2! n3", "n2", ""}, {"n1 n2! n3", "n2", ""}, {"n1 n2! n3", "n2", ""},
		},
		"a silent learner gets no vote": {
			{"n1 n2! n3 (n4)!", "n2", ""}, {"n1 n2! n3 (n4)!", "n2", ""}, {"n1 n2! n3 (n4)!", "n2", ""}, {"n1 n2! n3 (n4)!", "n2", ""},
		},
		"a missing voter is replaced at once, first nodes first": {
			{"n1 n3 (n0) (n2)", "", "promote n2"}, {"n1 n2 n3 (n0)", "", ""},
		},
		"a learner that cannot get the vote lets the next one try": {
			{"n1 n3 (n4) (n5)", "", "promote n4"}, {"n1 n3 (n4) (n5)", "", "promote n4"}, {"n1 n3 (n4) (n5)", "", "promote n4"},
			{"n1 n3 (n4) (n5)", "", "promote n5"}, {"n1 n3 (n4) (n5)", "", "promote n5"}, {"n1 n3 (n4) (n5)", "", "promote n5"},
			{"n1 n3 (n4) (n5)", "", "promote n4"}, {"n1 n3 n4 (n5)", "", ""},
		},
		"then the order is by name": {{"n1 n3 (n5) (n4)", "", "promote n4"}},
		"a learner that is gone is removed": {
			{"n1 n2 n3 (n4)!", "n4", ""}, {"n1 n2 n3 (n4)!", "n4", ""}, {"n1 n2 n3 (n4)!", "n4", ""}, {"n1 n2 n3 (n4)!", "n4", "remove n4"},
		},
		"a learner that is gone and sends messages stays": {
			{"n1 n2 n3 (n4)", "n4", ""}, {"n1 n2 n3 (n4)", "n4", ""}, {"n1 n2 n3 (n4)", "n4", ""}, {"n1 n2 n3 (n4)", "n4", ""},
		},
		"a learner that has left is removed when it is silent twice": {
			{"n1 n2 n3 (n4)", "+n4", ""}, {"n1 n2 n3 (n4)!", "+n4", ""}, {"n1 n2 n3 (n4)!", "+n4", "remove n4"}, {"n1 n2 n3", "", ""},
		},
		"all learners that have left are removed together": {
			{"n1 n2 n3 (n4)! (n5)! (n6)", "+n4 +n5", ""}, {"n1 n2 n3 (n4)! (n5)! (n6)", "+n4 +n5", "remove n4, remove n5"},
		},
		"a learner that has left and joins again stays": {
			{"n1 n2 n3 (n4)!", "+n4", ""}, {"n1 n2 n3 (n4)", "", ""}, {"n1 n2 n3 (n4)!", "", ""}, {"n1 n2 n3 (n4)!", "", ""},
		},
		"a voter that has left is replaced when it is silent twice": {
			{"n1 n2! n3 (n4)", "+n2", ""}, {"n1 n2! n3 (n4)", "+n2", "promote n4, remove n2"},
		},
		"the leader does not remove itself": {
			{"n1! n2 n3 (n4)", "n1", ""}, {"n1! n2 n3 (n4)", "n1", ""}, {"n1! n2 n3 (n4)", "n1", ""}, {"n1! n2 n3 (n4)", "n1", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &members{self: "n1", first: map[string]string{"n1": "", "n2": "", "n3": ""}, after: 3 * time.Second}
			now := time.Unix(0, 0)
			for i, s := range steps {
				now = now.Add(time.Second)
				left := func(name string) bool { return slices.Contains(strings.Fields(s.gone), "+"+name) }
				gone := func(name string) bool { return left(name) || slices.Contains(strings.Fields(s.gone), name) }
				got := strings.Join(changeTexts(m.decide(observation{now, list(s.members), gone, left})), ", ")
				if got != s.want {
					t.Errorf("step %d, with %s: got %q, want %q", i, s.members, got, s.want)
				}
			}
		})
	}
}

func TestAdmission(t *testing.T) {
	full := make([]string, membersMax)
	for i := range full {
		full[i] = "x" + strings.Repeat("y", i)
	}
	for name, c := range map[string]struct {
		from, plan, members string
		gone                string
		id, known           uint64
		want                answerCode
		text, changes       string
	}{
		"a new node":                                 {from: "n4", plan: "p", members: "n1 n2 n3", id: 7, changes: "add learner n4"},
		"a table without a plan":                     {from: "n4", plan: "", members: "n1 n2 n3", id: 7, changes: "add learner n4"},
		"a member":                                   {from: "n2", plan: "p", members: "n1 n2 n3", id: member("n2").ID},
		"another plan":                               {from: "n4", plan: "q", members: "n1 n2 n3", id: 7, want: answerPlan},
		"an emptied disk":                            {from: "n2", plan: "p", members: "n1 n2! n3", id: 7, changes: "remove n2, add learner n2"},
		"two processes with one name":                {from: "n2", plan: "p", members: "n1 n2 n3", id: 7, want: answerWait, text: "another process"},
		"a member without a leader":                  {from: "n2", plan: "p", members: "n1 n2 n3", id: member("n2").ID, known: 10},
		"a removed member":                           {from: "n4", plan: "p", members: "n1 n2 n3", id: 7, known: 10, want: answerRemoved, text: "was removed"},
		"a removed member that had left":             {from: "n4", plan: "p", members: "n1 n2 n3", gone: "n4", id: 7, known: 10, want: answerLeft, text: "has left"},
		"a replaced member":                          {from: "n2", plan: "p", members: "n1 n2 n3", id: 7, known: 10, want: answerRemoved, text: "was removed"},
		"a member that the leader does not know yet": {from: "n4", plan: "p", members: "n1 n2 n3", id: 7, known: 11, want: answerAdmitted},
		"too many nodes":                             {from: "n4", plan: "p", members: strings.Join(full, " "), id: 7, want: answerRefused, text: "largest number"},
		"too many nodes, and one has left":           {from: "n4", plan: "p", members: strings.Join(full[1:], " ") + " (n5)!", gone: "n5", id: 7, changes: "remove n5, add learner n4"},
		"too many nodes, and one leaves":             {from: "n4", plan: "p", members: strings.Join(full[1:], " ") + " (n5)", gone: "n5", id: 7, want: answerWait, text: "about to end"},
		"the address of a node that has left":        {from: "n4", plan: "p", members: "n1 n2 (n5@host:1)!", gone: "n5", id: 7, changes: "remove n5, add learner n4"},
		"the address of a node that leaves":          {from: "n4", plan: "p", members: "n1 n2 (n5@host:1)", gone: "n5", id: 7, want: answerWait, text: "node n5 has left the cluster"},
		"the address of a member":                    {from: "n4", plan: "p", members: "n1 n2 (n5@host:1)!", id: 7, want: answerWait, text: "node n5 has the address host:1"},
		"the own address":                            {from: "n4", plan: "p", members: "n1 n2 (n4@host:1)!", id: 7, changes: "remove n4, add learner n4"},
	} {
		gone := func(name string) bool { return slices.Contains(strings.Fields(c.gone), name) }
		got := admit(incoming{c.from, request{number: 5, id: c.id, address: "host:1", plan: "p", known: c.known}}, table.Plan{Hash: c.plan}, 10, list(c.members), gone, gone(c.from))
		var changes []string
		for _, list := range got.changes {
			changes = append(changes, changeTexts(list)...)
		}
		if got.answer.number != 5 || got.answer.code != c.want || !strings.Contains(got.answer.text, c.text) || strings.Join(changes, ", ") != c.changes {
			t.Errorf("%s: got the answer %+v and the changes %v", name, got.answer, changes)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add(appendRequest(nil, request{1, 2, "host:1", "plan", 3}))
	f.Add(appendAnswer(nil, answer{number: 1, code: answerWait, text: "text"}))
	f.Add(appendAnswer(nil, answer{number: 1, code: answerPlan, plan: table.NewPlan("plan", []string{"processor p = number 0"})}))
	f.Add(appendRenewals(nil, table.Renewal{Name: "node n1", Token: 3, Asked: time.Second}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m any
		var err error
		allocated.Within(t, 20*len(b), func() { m, err = readMessage(b) }) // a renewal of 3 bytes takes 32
		if err != nil {
			return
		}
		var again []byte
		switch m := m.(type) {
		case request:
			again = appendRequest(nil, m)
		case answer:
			again = appendAnswer(nil, m)
		case []table.Renewal:
			again = appendRenewals(nil, m...)
		}
		if m2, err := readMessage(again); err != nil || !reflect.DeepEqual(m, m2) {
			t.Fatalf("%x is read as %v, and its encoding as %v (%v)", b, m, m2, err)
		}
	})
}
