package raft

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	etcd "go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

const bareGroup = 1 // the group of messages in the transport

// bareLoops are three minimal loops around etcd's engine. They have no types and no
// sessions. They trust their peers, and a command that is proposed twice is counted
// twice. They take snapshots as often as package raft.
type bareLoops struct {
	loops   []*bareLoop
	waiters []chan struct{} // by caller, each with room for one outcome
	retries []*time.Timer   // by caller
}

// bareLoop is one of the loops.
type bareLoop struct {
	id      uint64
	batched bool
	bytes   int             // bytes of a command
	waiters []chan struct{} // by caller; the leader's loop answers them
	log     wal.Log
	link    transport.Transport
	storage *etcd.MemoryStorage
	node    *etcd.RawNode
	members *pb.ConfState
	n       uint64 // the state
	applied uint64 // index of the last applied entry
	snapped uint64 // index of the last snapshot
	kept    int    // bytes of the entries in storage
	leads   atomic.Bool
	term    atomic.Uint64

	mu        sync.Mutex
	messages  []*pb.Message
	proposals [][]byte
	wake      chan struct{}
	stop      chan struct{}
	done      chan struct{}
	err       error // is set before done is closed
}

func bare(dir string, l Load) (Group, error)        { return openBare(dir, l, false) }
func bareBatched(dir string, l Load) (Group, error) { return openBare(dir, l, true) }

func openBare(dir string, load Load, batched bool) (Group, error) {
	peers, err := loopback()
	if err != nil {
		return nil, err
	}
	g := &bareLoops{waiters: make([]chan struct{}, load.Callers)}
	for i := range g.waiters {
		g.waiters[i] = make(chan struct{}, 1)
		g.retries = append(g.retries, time.NewTimer(bareRetry))
	}
	for i, name := range names {
		l := &bareLoop{
			id: uint64(i + 1), batched: batched, bytes: load.Bytes, waiters: g.waiters,
			wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		}
		if err := l.open(dir, name, peers); err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.loops = append(g.loops, l)
		go l.run()
	}
	g.loops[0].receive("", [][]byte{must(proto.Marshal(&pb.Message{Type: pb.MsgHup.Enum()}))})
	if err := until("leader", g.loops[0].leads.Load); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func (l *bareLoop) open(dir, name string, peers map[string]string) (err error) {
	quiet := slog.New(slog.DiscardHandler)
	if l.link, err = grpc.Listen(grpc.Config{
		Node: name, Topology: "bare", Version: "1", Address: peers[name], Peers: peers, Logger: quiet,
	}); err != nil {
		return err
	}
	if l.log, _, err = wal.Open(filepath.Join(dir, name), wal.Identity{Topology: "bare", Group: "bare", Node: l.id}, wal.Options{}); err != nil {
		return err
	}
	members := &pb.ConfState{}
	for i := range names {
		members.Voters = append(members.Voters, uint64(i+1))
	}
	l.members = members
	first := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: members}}
	l.storage = etcd.NewMemoryStorage()
	if err := errors.Join(l.storage.ApplySnapshot(first), l.log.SaveSnapshot(first)); err != nil {
		return err
	}
	l.node, err = etcd.NewRawNode(&etcd.Config{
		ID: l.id, ElectionTick: int(election / heartbeat), HeartbeatTick: 1, Storage: l.storage, Applied: 1,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, MaxInflightBytes: 64 << 20, MaxUncommittedEntriesSize: 1 << 30,
		CheckQuorum: true, PreVote: true, Logger: &etcd.DefaultLogger{Logger: discard},
	})
	l.link.Handle(bareGroup, l.receive)
	return err
}

// receive is called on goroutines of the transport.
func (l *bareLoop) receive(_ string, payloads [][]byte) {
	for _, b := range payloads {
		m := new(pb.Message)
		if proto.Unmarshal(b, m) != nil {
			continue
		}
		l.mu.Lock()
		l.messages = append(l.messages, m)
		l.mu.Unlock()
	}
	l.ring()
}

func (l *bareLoop) ring() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// bareRetry is how long a caller waits before it proposes again: the engine drops
// commands when the leader changes.
const bareRetry = 3 * election

// Propose gives the leader's loop a command that begins with the caller's number.
func (g *bareLoops) Propose(ctx context.Context, caller int) error {
	retry := g.retries[caller]
	defer retry.Stop()
	for {
		l := g.leader()
		command := make([]byte, l.bytes)
		binary.LittleEndian.PutUint64(command, uint64(caller))
		l.mu.Lock()
		l.proposals = append(l.proposals, command)
		l.mu.Unlock()
		l.ring()
		retry.Reset(bareRetry)
		select {
		case <-g.waiters[caller]:
			return nil
		case <-l.done:
			return fmt.Errorf("the loop has ended: %w", l.err)
		case <-retry.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leader returns the loop of the leader, or any other if there is no leader.
func (g *bareLoops) leader() *bareLoop {
	for _, l := range g.loops {
		if l.leads.Load() {
			return l
		}
	}
	return g.loops[0]
}

func (l *bareLoop) run() {
	defer close(l.done)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	var messages []*pb.Message
	var proposals [][]byte
	for {
		select {
		case <-l.stop:
			l.err = io.EOF
			return
		case <-ticker.C:
			l.node.Tick()
		case <-l.wake:
		}
		clear(messages)
		clear(proposals)
		l.mu.Lock()
		l.messages, messages = messages[:0], l.messages
		l.proposals, proposals = proposals[:0], l.proposals
		l.mu.Unlock()
		for _, m := range messages {
			if m.GetType() == pb.MsgHup {
				_ = l.node.Campaign()
			} else {
				_ = l.node.Step(m) // it rejects late messages
			}
		}
		if l.err = l.propose(proposals); l.err != nil && !errors.Is(l.err, etcd.ErrProposalDropped) {
			return
		}
		for l.node.HasReady() {
			if l.err = l.work(l.node.Ready()); l.err != nil {
				return
			}
		}
	}
}

func (l *bareLoop) propose(commands [][]byte) error {
	if len(commands) == 0 {
		return nil
	}
	if l.batched {
		var all []byte
		for _, c := range commands {
			all = append(all, c...)
		}
		return l.node.Propose(all)
	}
	entries := make([]*pb.Entry, len(commands))
	for i, c := range commands {
		entries[i] = &pb.Entry{Data: c}
	}
	return l.node.Step(&pb.Message{Type: pb.MsgProp.Enum(), From: &l.id, Entries: entries})
}

// work executes a Ready of the engine. A leader sends its entries while its own disk
// writes them.
func (l *bareLoop) work(ready etcd.Ready) error {
	status := l.node.BasicStatus()
	leads := status.RaftState == etcd.StateLeader
	l.leads.Store(leads)
	l.term.Store(status.GetTerm())
	if leads {
		l.send(ready.Messages)
	}
	if !etcd.IsEmptySnap(ready.Snapshot) {
		if err := l.install(ready.Snapshot); err != nil {
			return err
		}
	}
	if len(ready.Entries) > 0 || !etcd.IsEmptyHardState(ready.HardState) {
		if err := l.log.Save(ready.HardState, ready.Entries, ready.MustSync); err != nil {
			return err
		}
	}
	if !leads {
		l.send(ready.Messages)
	}
	if !etcd.IsEmptyHardState(ready.HardState) {
		if err := l.storage.SetHardState(ready.HardState); err != nil {
			return err
		}
	}
	if err := l.storage.Append(ready.Entries); err != nil {
		return err
	}
	for _, e := range ready.Entries {
		l.kept += len(e.Data)
	}
	for _, e := range ready.CommittedEntries {
		l.apply(e.Data)
		l.applied = e.GetIndex()
	}
	l.node.Advance(ready)
	if l.kept < bareSnapshotBytes+bareTrailingBytes || l.applied == l.snapped {
		return nil
	}
	return l.snapshot()
}

// Bytes of entries between two snapshots, and of entries kept after one, as in package
// raft.
const (
	bareSnapshotBytes = 256 << 20
	bareTrailingBytes = 64 << 20
)

// snapshot takes a snapshot and removes its entries, except the last ones.
func (l *bareLoop) snapshot() error {
	s, err := l.storage.CreateSnapshot(l.applied, l.members, binary.LittleEndian.AppendUint64(nil, l.n))
	if err != nil {
		return err
	}
	if err := l.log.SaveSnapshot(s); err != nil {
		return err
	}
	l.snapped = l.applied
	first, err := l.storage.FirstIndex()
	if err != nil {
		return err
	}
	list, err := l.storage.Entries(first, l.applied+1, math.MaxUint64)
	if err != nil {
		return err
	}
	trailing := 0
	for ; len(list) > 0 && trailing < bareTrailingBytes; list = list[:len(list)-1] {
		trailing += len(list[len(list)-1].Data)
	}
	for _, e := range list {
		l.kept -= len(e.Data)
	}
	if len(list) == 0 {
		return nil
	}
	return l.storage.Compact(list[len(list)-1].GetIndex())
}

// install installs a snapshot of the leader.
func (l *bareLoop) install(s *pb.Snapshot) error {
	l.n, l.applied, l.kept = binary.LittleEndian.Uint64(s.Data), s.GetMetadata().GetIndex(), 0
	l.snapped = l.applied
	return errors.Join(l.log.SaveSnapshot(s), l.storage.ApplySnapshot(s))
}

func (l *bareLoop) send(messages []*pb.Message) {
	for _, m := range messages {
		payload, err := proto.Marshal(m)
		if err != nil {
			panic(err) // an error of the engine
		}
		l.link.Send(names[m.GetTo()-1], transport.Message{Group: bareGroup, Payload: payload})
	}
}

func (l *bareLoop) apply(commands []byte) {
	for ; len(commands) >= l.bytes; commands = commands[l.bytes:] {
		l.n++
		if l.leads.Load() {
			select {
			case l.waiters[binary.LittleEndian.Uint64(commands)] <- struct{}{}:
			default: // an outcome of the same command, which was proposed again
			}
		}
	}
}

// Counts adds up the figures of all three.
func (g *bareLoops) Counts() (c Counts) {
	for _, l := range g.loops {
		c.Dropped += l.link.Stats().Dropped
		c.Term = max(c.Term, l.term.Load())
	}
	return c
}

func (g *bareLoops) Close() error {
	var failed error
	for _, l := range g.loops {
		close(l.stop)
		<-l.done
		if !errors.Is(l.err, io.EOF) {
			failed = errors.Join(failed, l.err)
		}
		failed = errors.Join(failed, l.link.Close(), l.log.Close())
	}
	return failed
}
