package raft

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// TestOneClockIsWrong: if one clock is wrong, the time comes from the others.
func TestOneClockIsWrong(t *testing.T) {
	const year = int64(365 * 24 * time.Hour)
	const noon = int64(1_700_000_000_000_000_000)
	group := members{1: {}, 2: {}, 3: {}, 4: {}, 5: {}}
	for _, test := range []struct {
		what   string
		own    int64
		others []int64
		want   int64
	}{
		{"alone", noon + year, nil, noon + year},
		{"all agree", noon, []int64{noon + 1e6, noon - 1e6}, noon},
		{"own is ahead", noon + year, []int64{noon, noon}, noon},
		{"own is behind", noon - year, []int64{noon, noon}, noon},
		{"another is ahead", noon, []int64{noon + year, noon}, noon},
		{"two nodes, the peer is ahead", noon, []int64{noon + year}, noon},
		{"two nodes, own is ahead", noon + year, []int64{noon}, noon},
		{"two of five are ahead", noon + year, []int64{noon, noon + 2*year, noon, noon}, noon},
		{"peers without a clock", noon, []int64{0, 0}, noon},
	} {
		var c clocks
		const uptime = 3 * time.Hour
		for i, wall := range test.others {
			c.set(uint64(i+1), wall, uptime)
		}
		got, wrong := c.now(test.own, uptime, group)
		if got != test.want || (wrong != 0) != (test.own != test.want) {
			t.Errorf("%s: time %v, own clock wrong by %v, want time %v", test.what, time.Unix(0, got), wrong, time.Unix(0, test.want))
		}
	}
}

// TestAgreedClock: a minority of wrong clocks, whichever they are, does not change the time
// that a majority has reached. Without the clocks of a majority there is no such time.
func TestAgreedClock(t *testing.T) {
	const noon, year = int64(1_700_000_000_000_000_000), int64(365 * 24 * time.Hour)
	const unknown = -1
	learner := Member{Learner: true}
	three, five := members{1: {}, 2: {}, 3: {}, 9: learner}, members{1: {}, 2: {}, 3: {}, 4: {}, 5: {}, 9: learner}
	for what, test := range map[string]struct {
		group  members
		own    int64
		others []int64 // of the members from 2 on, 0: not known
		want   int64
	}{
		"alone":                                 {members{1: {}}, noon + year, nil, noon + year},
		"alone with a broken clock":             {members{1: {}}, math.MinInt64, nil, unknown},
		"two, own is ahead":                     {members{1: {}, 2: {}}, noon + year, []int64{noon}, noon},
		"two, the other is ahead":               {members{1: {}, 2: {}}, noon, []int64{noon + year}, noon},
		"two, the other is not known":           {members{1: {}, 2: {}}, noon, nil, unknown},
		"own is ahead":                          {three, noon + year, []int64{noon, noon - 1}, noon},
		"another is ahead":                      {three, noon, []int64{noon - 1, noon + year}, noon},
		"own is behind":                         {three, noon - year, []int64{noon, noon}, noon},
		"own is ahead, and one is not known":    {three, noon + year, []int64{noon}, noon},
		"one is ahead, and one is not known":    {three, noon, []int64{0, noon + year}, noon},
		"two are not known":                     {three, noon, nil, unknown},
		"two are not valid":                     {three, noon, []int64{math.MaxInt64, -5}, unknown},
		"all are ahead":                         {three, noon + year, []int64{noon + year, noon + year}, noon + year},
		"two of five are ahead, two unknown":    {five, noon + year, []int64{noon + year, noon}, noon},
		"two of five are ahead, three unknown":  {five, noon + year, []int64{noon + year}, unknown},
		"two of five are ahead, two are behind": {five, noon, []int64{noon + year, noon + year, noon - year, noon - year}, noon},
	} {
		var c clocks
		const uptime = 3 * time.Hour
		for i, wall := range test.others {
			c.set(uint64(i+2), wall, uptime)
		}
		c.set(9, noon+2*year, uptime)  // it has no vote
		c.set(99, noon+2*year, uptime) // it is not a member
		got, ok := c.agreed(1, test.own, uptime, test.group)
		if got += int64(uptime); ok != (test.want != unknown) || ok && got != test.want {
			t.Errorf("%s: %v %t, want %v", what, time.Duration(got-noon), ok, time.Duration(test.want-noon))
		}
		if got, ok := c.agreed(1, test.own, uptime+clockAgeMax+1, test.group); ok && len(test.group) > 1 {
			t.Errorf("%s: the clocks are old, and the time is %v", what, time.Duration(got-noon))
		}
	}
}

// TestClocksGoOn: a clock that was received advances with the uptime of the node, and expires.
func TestClocksGoOn(t *testing.T) {
	const noon = int64(1_700_000_000_000_000_000)
	group := members{1: {}, 2: {}}
	var c clocks
	c.set(1, noon, time.Second)
	c.set(2, noon, time.Second)
	for stranger := range uint64(2) {
		c.set(98+stranger, noon+int64(365*24*time.Hour), time.Second) // not a member
	}
	ahead := noon + int64(time.Hour)
	if got, _ := c.now(ahead, 21*time.Second, group); got != noon+int64(20*time.Second) {
		t.Errorf("after 20 s the time must have advanced by 20 s, got %v", time.Duration(got-noon))
	}
	if got, _ := c.now(ahead, time.Second+clockAgeMax+1, group); got != ahead || len(c.byMember) > 0 {
		t.Errorf("an old clock must not count, got %v", time.Duration(got-noon))
	}
}

// TestClocksInMessages: the clock and the lease time of a message are parsed and removed before the engine gets the
// message. An invalid clock is ignored.
func TestClocksInMessages(t *testing.T) {
	m := &pb.Message{Type: pb.MsgHeartbeat.Enum(), Term: new(uint64(7))}
	plain, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	field := func(number protowire.Number, form protowire.Type, b ...byte) []byte {
		return append(protowire.AppendTag(nil, number, form), b...)
	}
	for _, c := range []struct {
		what  string
		tail  []byte
		want  int64
		lease time.Duration // 0: unknown
	}{
		{"a clock", appendClock(nil, 1_700_000_000_000_000_000), 1_700_000_000_000_000_000, 0},
		{"none", appendClock(nil, 0), 0, 0},
		{"one before 1970", appendClock(nil, -5), 0, 0},
		{"two", append(appendClock(nil, 4), appendClock(nil, 5)...), 5, 0},
		{"another field", field(leaseField+1, protowire.VarintType, 5), 0, 0},
		{"bytes", field(clockField, protowire.BytesType, 1, 5), 0, 0},
		{"after another field", append(field(leaseField+1, protowire.BytesType, 1, 5), appendClock(nil, 5)...), 5, 0},
		{"a lease", appendLease(nil, time.Second), 0, time.Second},
		{"both", appendClock(appendLease(nil, 1), 5), 5, 1},
		{"an invalid lease", field(leaseField, protowire.VarintType, 0), 0, 0},
	} {
		got := new(pb.Message)
		if err := proto.Unmarshal(append(bytes.Clone(plain), c.tail...), got); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if wall, lease := takeTimes(got); wall != c.want || lease != cmp.Or(c.lease, unknownLease) || !proto.Equal(got, m) {
			t.Errorf("%s: %d and %d, want %d and %d, and %v", c.what, wall, lease, c.want, c.lease, got)
		}
	}
	var c clocks
	c.set(1, math.MaxInt64, 0)
	c.set(2, -1, 0)
	if len(c.byMember) != 0 {
		t.Errorf("invalid times must be ignored, got %v", c.byMember)
	}
}

// TestAWrongClockIsTold: a node logs that its clock is wrong once, again after some time, and
// when the clock is right again.
func TestAWrongClockIsTold(t *testing.T) {
	const noon = int64(1_700_000_000_000_000_000)
	wall, uptime := noon, time.Duration(0)
	var logged []string
	c := &Core{id: 1, members: members{1: {}, 2: {}, 3: {}}}
	c.config.Now, c.config.Uptime = func() int64 { return wall }, func() time.Duration { return uptime }
	c.config.Log = func(_ LogLevel, text string) { logged = append(logged, text) }
	watch := func(want int, says string) {
		t.Helper()
		for range 3 {
			c.Clock(2, noon+int64(uptime))
			c.Clock(3, noon+int64(uptime))
			c.checkClock()
		}
		if len(logged) != want || want > 0 && !strings.Contains(logged[want-1], says) {
			t.Errorf("logged %q, want %d and at last %q", logged, want, says)
		}
	}
	watch(0, "")
	wall = noon + int64(time.Hour)
	watch(1, "differs by 1h0m0s")
	uptime = clockWarnEvery - 1
	watch(1, "differs")
	uptime = clockWarnEvery
	watch(2, "differs by 50m0s")
	wall = noon + int64(uptime)
	watch(3, "agrees")
}
