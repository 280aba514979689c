package raft

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/runtime/cluster/table"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// TestWaiting: a node ends when the answer was for long that another process has its name,
// and not because of two such answers with a long time without a leader between them.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Table{config: Config{ElectionTimeout: time.Second}}
		wait := answer{code: answerWait, text: "another process"}
		var w waiting
		for range 3 {
			if err := o.takeAnswer(wait, &w); err != nil {
				t.Fatalf("the node was refused after a time without answers: %v", err)
			}
			time.Sleep(time.Minute) // virtual time
		}
		began := time.Now()
		for o.takeAnswer(wait, &w) == nil {
			if time.Since(began) > time.Minute {
				t.Fatal("the node waits for ever")
			}
			time.Sleep(250 * time.Millisecond)
		}
		if d := time.Since(began); d < waitTimeouts*time.Second {
			t.Errorf("the node was refused after %v", d)
		}
		if err := o.takeAnswer(wait, &w); !errors.Is(err, table.ErrRefused) {
			t.Errorf("the node ends with %v, want ErrRefused", err)
		}
	})
}

// TestWaitsFor: the text says which nodes must run.
func TestWaitsFor(t *testing.T) {
	members := func(names ...string) (list []raft.MemberStatus) {
		for _, name := range names {
			list = append(list, raft.MemberStatus{Member: raft.Member{Name: name, Learner: name == "n9"}})
		}
		return list
	}
	for _, c := range []struct {
		status raft.Status
		want   string
	}{
		{raft.Status{Role: "founding"}, "all first members (n1, n2): they must run and reach each other, because this node has no log of the address table"},
		{raft.Status{Role: "joining"}, "most of the first members (n1, n2), which admit this node to the address table"},
		{raft.Status{Role: "follower", Members: members("n1", "n2", "n9")}, "a leader of the address table: 2 of its 2 voters (n1, n2) must run and reach each other"},
		{raft.Status{Role: "candidate", Members: members("n1", "n2", "n3")}, "a leader of the address table: 2 of its 3 voters (n1, n2, n3) must run and reach each other"},
		{raft.Status{Role: "follower", Leader: "n1"}, ""},
	} {
		if got := waitsFor(c.status, []string{"n1", "n2"}); got != c.want {
			t.Errorf("%s: got %q, want %q", c.status.Role, got, c.want)
		}
	}
}

// counted counts the messages of a group.
type counted struct {
	transport.Transport
	group uint64
	sent  atomic.Int64
}

func (c *counted) Send(to string, messages ...transport.Message) {
	for _, m := range messages {
		if m.Group == c.group {
			c.sent.Add(1)
		}
	}
	c.Transport.Send(to, messages...)
}

// TestFailedAdmission: a node whose admission fails, because there is no majority, is not
// told to wait, because it would end soon.
func TestFailedAdmission(t *testing.T) {
	memory := transport.NewMemory(transport.MemoryOptions{})
	link, err := memory.Join("n1")
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	c := &counted{Transport: link, group: transport.GroupID("test", "addresses/members")}
	o, err := Open(Config{
		Topology: "test", Node: "n1", Address: "n1:1", First: map[string]string{"n1": "n1:1"}, Plan: "p",
		Dir: memdir.Quick(t), Transport: c, Logger: slog.New(slog.DiscardHandler), ElectionTimeout: 50 * time.Millisecond, Heartbeat: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := o.current()
	if err := o.Close(); err != nil { // a machine that cannot change its members any more
		t.Fatal(err)
	}
	o.admit(t.Context(), m, incoming{"n4", request{number: 1, id: 7, address: "n4:1", plan: "p"}}, raft.Status{Role: "leader", Members: list("n1 n2 n3")})
	if n := c.sent.Load(); n > 0 {
		t.Errorf("%d answers were sent", n)
	}
}
