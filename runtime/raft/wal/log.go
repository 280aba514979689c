package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// Log keeps what one node of one group must not forget. Its methods may be called
// from any goroutine; they run one at a time.
//
// The order of a Ready is: SaveSnapshot where there is one, then Save. An error of
// either, or of Sync, is final: what is on the disk is not known any more, so every
// later call but Close returns an error that matches [ErrFailed].
type Log interface {
	// Save writes the state and the entries behind what is there. Entries follow one
	// another; those of the same or a higher index than the first are gone. A nil or
	// empty state changes nothing. Where sync is set, all is durable on return, as far
	// as [Options.Sync] promises it. The log does not keep the entries and the state.
	Save(state *raftpb.HardState, entries []*raftpb.Entry, sync bool) error
	// SaveSnapshot makes a snapshot durable, whatever Options.Sync says, and takes its
	// index as committed. Entries behind it stay where the log has its last entry, with
	// its term; else the log begins anew with it. After that segments and snapshots
	// that nobody needs are removed: the newest two snapshots stay, and the entries
	// since the older one. A snapshot has less than 2 GiB; more is an error that matches
	// [ErrTooLarge], and the log is as before. See CreateSnapshot for larger ones.
	SaveSnapshot(s *raftpb.Snapshot) error
	// CreateSnapshot begins a snapshot with a body, which is written as a stream, in a
	// little more than 256 KiB of memory, and has at most [SnapshotBodyMax] bytes. It
	// becomes the newest when it is committed.
	CreateSnapshot() (SnapshotWriter, error)
	// OpenSnapshot opens the snapshot at an index, one of the newest two. The error
	// matches [os.ErrNotExist] if the log does not have it any more. An error of the file
	// is not one of the log.
	OpenSnapshot(index uint64) (*SnapshotReader, error)
	// Sync makes all that was saved durable, whatever Options.Sync says.
	Sync() error
	// Close syncs and lets go of the directory. It may be called again.
	Close() error
}

// Identity says whose log it is. It stands in the log: another's is not opened.
type Identity struct {
	Topology string
	Group    string
	Node     uint64
	Name     string // of the node, for people: logs are told apart by the others
	GroupID  uint64 // tells the group from others of its name; 0 in logs from before there was one. Asked for, 0 is any
}

func (id Identity) String() string {
	return fmt.Sprintf("%s (group %q, topology %q)", id.node(), id.Group, id.Topology)
}

// Stored is what a log held when it was opened. Nothing of it is kept by the log.
type Stored struct {
	Snapshot *raftpb.Snapshot  // the newest, or its head; nil: none
	BodySize int64             // bytes of its body, which is not read yet; -1: it has none, and its state is in its Data
	State    *raftpb.HardState // never nil; Snapshot's index <= Commit <= index of the last entry
	Entries  []*raftpb.Entry   // those behind Snapshot, one after another
	Fresh    bool              // the log was made just now

	open func() (*SnapshotReader, error)
}

// OpenBody opens the snapshot to read its body, which is checked while it is read.
func (s Stored) OpenBody() (*SnapshotReader, error) {
	if s.open == nil {
		return nil, fmt.Errorf("wal: there is no snapshot: %w", os.ErrNotExist)
	}
	return s.open()
}

// Sync says when what was saved reaches the disk.
type Sync int

// A kill of the process loses nothing that Save returned for, whatever the mode. A
// power failure, or a crash of the system, loses:
const (
	Always   Sync = iota // nothing that was saved with sync
	Interval             // up to the last interval
	None                 // all since the last snapshot, if the system has not written it by itself
)

func (s Sync) String() string {
	switch s {
	case Always:
		return "always"
	case Interval:
		return "interval"
	case None:
		return "none"
	}
	return fmt.Sprintf("Sync(%d)", int(s))
}

// Options of a log; the zero value is usable.
type Options struct {
	Sync     Sync
	Interval time.Duration // between syncs in mode Interval; default 10 ms
	Logger   *slog.Logger  // told of new logs, cut tails and slow syncs; default none
}

// intervalDefault is what a person does not notice, and a disk has many of.
const intervalDefault = 10 * time.Millisecond

func (o Options) withDefaults() (Options, error) {
	if o.Sync < Always || o.Sync > None {
		return o, fmt.Errorf("wal: there is no %v", o.Sync)
	}
	if o.Interval < 0 {
		return o, fmt.Errorf("wal: the interval is %v", o.Interval)
	}
	if o.Interval == 0 {
		o.Interval = intervalDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// What goes wrong; errors.Is finds these.
var (
	ErrFailed   = errors.New("wal: the log has failed")             // an earlier call has; open it again
	ErrClosed   = errors.New("wal: the log is closed")              // by Close
	ErrNoLog    = errors.New("there is no log in it")               // for Verify and Dump; Open would make one
	ErrInUse    = errors.New("in use by another process")           // or by another log of this one
	ErrIdentity = errors.New("the log of another")                  // its identity is not the one asked for
	ErrDamaged  = errors.New("damaged")                             // every *DamageError
	ErrInvalid  = errors.New("wal: what is to be saved is invalid") // a mistake of the caller; the log is as before
)

// DamageError says that a file does not hold what was written to it. Nothing was
// changed on the disk.
type DamageError struct {
	File   string
	Offset int64 // of the first byte of the record, or of the part of the file, that is not right
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: damaged at offset %d: %s", e.File, e.Offset, e.Reason)
}

// Is makes every DamageError match [ErrDamaged].
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// IdentityError says that a log belongs to another.
type IdentityError struct {
	Dir       string
	Got, Want Identity // of the log; of who opens it
}

func (e *IdentityError) Error() string {
	if got, want := e.Got, e.Want; got.Group == want.Group && got.Topology == want.Topology && got.Node == want.Node {
		return fmt.Sprintf("wal: %s is the log of %v in the group with identity %016x, not %016x", e.Dir, e.Got, got.GroupID, want.GroupID)
	}
	if e.Got.Group != e.Want.Group || e.Got.Topology != e.Want.Topology {
		return fmt.Sprintf("wal: %s is the log of %v, not of %v", e.Dir, e.Got, e.Want)
	}
	return fmt.Sprintf("wal: %s is the log of %v, not of %s; TOPOGEN_NODE says which node this is", e.Dir, e.Got, e.Want.node())
}

// Is makes every IdentityError match [ErrIdentity].
func (e *IdentityError) Is(target error) bool { return target == ErrIdentity }
