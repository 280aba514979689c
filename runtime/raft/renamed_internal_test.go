package raft

import (
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// TestTheNameOfADisk: a later snapshot does not contain the name of a node that was renamed and then
// removed. The node may start under either name; it is then notified that it was removed.
func TestTheNameOfADisk(t *testing.T) {
	r := &Record{Name: "n2", ID: 22}
	member := func(m Member) *wal.Stored {
		return &wal.Stored{Snapshot: &pb.Snapshot{Data: appendHead(nil, head{members: []Member{m}})}}
	}
	for name, test := range map[string]struct {
		stored *wal.Stored
		ok     bool
	}{
		"no snapshot":         {&wal.Stored{}, false},
		"a member":            {member(Member{ID: 22, Name: "n2"}), false},
		"renamed":             {member(Member{ID: 22, Name: "m1"}), true},
		"renamed again":       {member(Member{ID: 22, Name: "m2", Was: "m1"}), true},
		"not a member":        {member(Member{ID: 23, Name: "n2"}), true},
		"unreadable snapshot": {&wal.Stored{Snapshot: &pb.Snapshot{Data: []byte{1}}}, false},
	} {
		if err := checkName("m1", r, test.stored); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
