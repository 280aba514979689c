package raft

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// incomingSnapshot is a body that comes from a peer.
type incomingSnapshot struct {
	from         uint64
	name         string // of that node
	transfer     uint64
	message      *pb.Message
	size         uint64
	received     uint64
	state        receiptState
	refusal      string
	progressTick int64             // tick of the last part
	decoding     bool              // or it waits for the node's loop
	early        map[uint64][]byte // parts that have come before others, by offset

	log     wal.Log
	body    wal.SnapshotWriter // nil: it ended
	head    *pb.Snapshot       // that the body was sealed with: the engine may write another form of it into its message
	install func()             // of the state machine; nil: it was not decoded yet, or is installed
}

// create makes room for the body.
func (a *incomingSnapshot) create() {
	body, err := a.log.CreateSnapshot()
	if err != nil {
		a.refuse(err)
		return
	}
	a.body, a.early = body, map[uint64][]byte{}
}

// refuse ends the arrival.
func (a *incomingSnapshot) refuse(err error) {
	a.state, a.refusal = receiptRefused, err.Error()
	a.end()
}

// end forgets the body, where it was not committed.
func (a *incomingSnapshot) end() {
	if a.body != nil {
		_ = a.body.Abort() // the next start removes the file
		a.body = nil
	}
	a.install, a.early = nil, nil
}

// write takes a part: what follows on what has come is written, and what comes too early
// is kept. It reports whether all has come.
func (a *incomingSnapshot) write(p *part) (all bool) {
	if a.body == nil || a.decoding || p.offset < a.received {
		return false
	}
	if p.offset > a.received {
		if len(a.early) < partsOnTheWay {
			a.early[p.offset] = p.data
		}
		return false
	}
	for data, ok := p.data, true; ok; data, ok = a.early[a.received] {
		delete(a.early, a.received)
		if _, err := a.body.Write(data); err != nil {
			a.refuse(err)
			return false
		}
		if a.received += uint64(len(data)); len(data) == 0 || a.received >= a.size {
			break
		}
	}
	return a.received == a.size
}

// decode reads the whole body, and makes it durable. Until then nothing of the node has
// changed, so a snapshot that cannot be read does not take the place of another.
func (a *incomingSnapshot) decode(machine StateMachine) error {
	body, err := a.body.Body()
	if err != nil {
		return err
	}
	install, err := prepareState(machine, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("the snapshot at %d cannot be decoded: %w", a.index(), err)
	}
	a.install = install
	a.head = proto.CloneOf(a.message.GetSnapshot())
	return a.body.Seal(a.head)
}

func (a *incomingSnapshot) index() uint64 { return a.message.GetSnapshot().GetMetadata().GetIndex() }

func (a *incomingSnapshot) receipt() *receipt {
	return &receipt{transfer: a.transfer, received: a.received, state: a.state, reason: a.refusal}
}
