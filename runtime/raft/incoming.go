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
func (i *incomingSnapshot) create() error {
	body, err := i.log.CreateSnapshot()
	if err != nil {
		return err
	}
	i.body, i.early = body, map[uint64][]byte{}
	return nil
}

// refuse ends the transfer with an error for the sender.
func (i *incomingSnapshot) refuse(err error) {
	i.state, i.refusal = receiptRefused, err.Error()
	i.end()
}

// end removes the body, unless it was committed.
func (i *incomingSnapshot) end() {
	if i.body != nil {
		_ = i.body.Abort() // the next start removes the file
		i.body = nil
	}
	i.install, i.early = nil, nil
}

// write handles a part. It writes the part if all earlier parts are there, and keeps it
// in memory otherwise. It reports whether the body is complete.
func (i *incomingSnapshot) write(p *part) (all bool, err error) {
	if i.body == nil || i.decoding || p.offset < i.received {
		return false, nil
	}
	if p.offset > i.received {
		if len(i.early) < partsOnTheWay {
			i.early[p.offset] = p.data
		}
		return false, nil
	}
	for data, ok := p.data, true; ok; data, ok = i.early[i.received] {
		delete(i.early, i.received)
		if _, err := i.body.Write(data); err != nil {
			return false, err
		}
		if i.received += uint64(len(data)); len(data) == 0 || i.received >= i.size {
			break
		}
	}
	return i.received == i.size, nil
}

// decode decodes the whole body, and makes it durable. Nothing else of the node has
// changed until then, so a snapshot that cannot be decoded does not replace another one.
func (i *incomingSnapshot) decode(machine StateMachine) error {
	body, err := i.body.Body()
	if err != nil {
		return err
	}
	install, err := prepareState(machine, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("the snapshot at %d cannot be decoded: %w", i.index(), err)
	}
	i.install = install
	i.head = proto.CloneOf(i.message.GetSnapshot())
	return i.body.Seal(i.head)
}

func (i *incomingSnapshot) index() uint64 { return i.message.GetSnapshot().GetMetadata().GetIndex() }

func (i *incomingSnapshot) receipt() *receipt {
	return &receipt{transfer: i.transfer, received: i.received, state: i.state, reason: i.refusal}
}
