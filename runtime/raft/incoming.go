package raft

import (
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// incomingSnapshot is a snapshot whose body is being received from a peer.
type incomingSnapshot struct {
	from         uint64
	name         string // name of the sender
	transfer     uint64
	message      *pb.Message
	size         uint64
	received     uint64
	state        receiptState
	refusal      string
	progressTick int64             // tick of the last part
	decoding     bool              // the snapshot is being decoded, or waits for the node's loop
	early        map[uint64][]byte // parts that came before earlier parts, by offset

	log     wal.Log
	body    wal.SnapshotWriter // nil after the transfer has ended
	head    *pb.Snapshot       // head with which the body was sealed; the engine may encode it differently in its message
	install func()             // installs the state; nil before it was decoded and after it was installed
}

// create creates the file for the body.
func (a *incomingSnapshot) create() {
	body, err := a.log.CreateSnapshot()
	if err != nil {
		a.refuse(err)
		return
	}
	a.body, a.early = body, map[uint64][]byte{}
}

// refuse ends the transfer with an error for the sender.
func (a *incomingSnapshot) refuse(err error) {
	a.state, a.refusal = receiptRefused, err.Error()
	a.end()
}

// end removes the body, unless it was committed.
func (a *incomingSnapshot) end() {
	if a.body != nil {
		_ = a.body.Abort() // the next start removes the file
		a.body = nil
	}
	a.install, a.early = nil, nil
}

// write handles a part. It writes the part if all earlier parts are there, and keeps it
// in memory otherwise. It reports whether the body is complete.
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

// decode decodes the whole body, and makes it durable. Nothing else of the node has
// changed until then, so a snapshot that cannot be decoded does not replace another one.
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
