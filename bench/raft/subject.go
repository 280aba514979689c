package raft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
)

// CommandBytes is the size of an update if sizes are not compared.
const CommandBytes = 64

const (
	heartbeat = 100 * time.Millisecond // of all subjects
	election  = time.Second
	patience  = 20 * time.Second // for a leader, and for an outcome: a longer wait is an error
)

// Group is three running replicas.
type Group interface {
	// Propose returns after a command was applied. caller is less than the number of
	// callers for which the group was opened. A caller waits for its outcome before it
	// proposes again.
	Propose(ctx context.Context, caller int) error
	Close() error
}

// Load is the load for which a group is opened.
type Load struct {
	Callers int // number of concurrent proposers
	Bytes   int // bytes of an update
}

// Counted is a group that counts dropped messages and terms.
type Counted interface {
	Counts() Counts
}

// Counts counts events since the group was opened that must not happen during a
// measurement.
type Counts struct {
	Dropped uint64 // messages, by the transports of all replicas
	Term    uint64 // the highest term; each election starts a new one
}

// Subject is an implementation of a replicated counter.
type Subject struct {
	Name string
	Open func(dir string, l Load) (Group, error)
}

// Subjects returns all subjects. The first is the subject of the goals.
func Subjects() []Subject {
	return []Subject{
		{"topogen-grpc", overGRPC},
		{"topogen-memory", overMemory},
		{"bare", bare},
		{"bare-batched", bareBatched},
		{"hashicorp", hashicorp},
		{"etcd", etcdServer},
	}
}

var names = []string{"n1", "n2", "n3"}

// counter is the state of topogen's state machine, and count its update.
type (
	counter struct{ n uint64 }
	count   [CommandBytes]byte
)

func (*count) Update(c *counter) error { c.n++; return nil }

// blob is an update of any size. Its bytes are not kept after decoding, as in the bare
// loop, because the work of the state is not compared.
type blob struct{ data []byte }

func (*blob) Update(c *counter) error { c.n++; return nil }

var blobCodec = fsm.Codec[blob]{
	Append: func(b []byte, v *blob) ([]byte, error) { return append(b, v.data...), nil },
	Consume: func(b []byte, v *blob) error {
		if len(b) == 0 {
			return errLength
		}
		return nil
	},
}

var errLength = errors.New("wrong length")

var counterCodec = fsm.Codec[counter]{
	Append: func(b []byte, c *counter) ([]byte, error) { return binary.LittleEndian.AppendUint64(b, c.n), nil },
	Consume: func(b []byte, c *counter) error {
		if len(b) != 8 {
			return errLength
		}
		c.n = binary.LittleEndian.Uint64(b)
		return nil
	},
}

var countCodec = fsm.Codec[count]{
	Append: func(b []byte, c *count) ([]byte, error) { return append(b, c[:]...), nil },
	Consume: func(b []byte, c *count) error {
		if copy(c[:], b) != CommandBytes {
			return errLength
		}
		return nil
	},
}

var (
	countDefinition = fsm.Definition[counter, count, struct{}]{
		Update:     func(u *count, c *counter) (struct{}, error) { return struct{}{}, u.Update(c) },
		StateCodec: counterCodec, UpdateCodec: countCodec,
	}
	blobDefinition = fsm.Definition[counter, blob, struct{}]{
		Update:     func(u *blob, c *counter) (struct{}, error) { return struct{}{}, u.Update(c) },
		StateCodec: counterCodec, UpdateCodec: blobCodec,
	}
)

// until waits until reached returns true.
func until(what string, reached func() bool) error {
	for began := time.Now(); !reached(); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			return fmt.Errorf("no %s within %v", what, patience)
		}
	}
	return nil
}

// freeAddresses returns loopback addresses on which no process listens.
func freeAddresses(n int) (list []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		list = append(list, l.Addr().String())
	}
	return list, nil
}
