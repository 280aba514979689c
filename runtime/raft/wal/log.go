package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// Log stores the durable state of one node in one group. Its methods may be called
// from any goroutine; they run one at a time.
//
// For a Ready of raft, call SaveSnapshot first, if it has a snapshot, and then Save. An
// error of these methods or of Sync is final: the content of the disk is unknown after it,
// so every later call except Close returns an error that matches [ErrFailed].
type Log interface {
	// Save appends the state and the entries. The indexes of the entries must be
	// consecutive. The first entry replaces all stored entries from its index on. A nil or
	// empty state leaves the stored state unchanged. If sync is set and
	// [Options.Sync] is Always, all data is durable on return. The log does not keep
	// references to the entries and the state.
	Save(state *raftpb.HardState, entries []*raftpb.Entry, sync bool) error
	// SaveSnapshot makes a snapshot durable, in every mode of Options.Sync, and raises the
	// commit index to at least its index. If the log has the last entry of the snapshot
	// with the same term, the entries after it stay. Otherwise the log removes all entries.
	// The log keeps the newest two snapshots and the entries since the older one. It removes
	// segments and snapshots that it no longer needs. A snapshot has less than 2 GiB. For
	// a larger one SaveSnapshot returns an error that matches [ErrTooLarge], and the log is
	// unchanged; use CreateSnapshot.
	SaveSnapshot(s *raftpb.Snapshot) error
	// CreateSnapshot starts a snapshot with a body of at most [SnapshotBodyMax] bytes. The
	// caller writes the body as a stream, which takes a little more than 256 KiB of memory.
	// Commit makes it the newest snapshot.
	CreateSnapshot() (SnapshotWriter, error)
	// OpenSnapshot opens one of the newest two snapshots by its index. The error matches
	// [os.ErrNotExist] if the log does not have the snapshot. After an error of the file the
	// log can still be used.
	OpenSnapshot(index uint64) (*SnapshotReader, error)
	// Sync makes all saved data durable, in every mode of Options.Sync.
	Sync() error
	// Close syncs, closes the files and unlocks the directory. It may be called more than
	// once.
	Close() error
}

// Identity names the node and the group that a log belongs to. The log contains it, and
// Open refuses a log with a different identity.
type Identity struct {
	Topology string
	Group    string
	Node     uint64
	Name     string // of the node, for messages; Open does not compare it
	GroupID  uint64 // distinguishes groups with the same name; 0 in old logs, and 0 passed to Open matches any group
}

func (id Identity) String() string {
	return fmt.Sprintf("%s (group %q, topology %q)", id.node(), id.Group, id.Topology)
}

// Stored is the content of a log when it was opened. The log keeps no references to it.
type Stored struct {
	Snapshot *raftpb.Snapshot  // the newest snapshot, or its head; nil: none
	BodySize int64             // bytes of the body, which Open does not read; -1: no body, and the state is in Snapshot.Data
	State    *raftpb.HardState // never nil; Snapshot's index <= Commit <= index of the last entry
	Entries  []*raftpb.Entry   // the entries after Snapshot, with consecutive indexes
	Fresh    bool              // Open has created the log

	open func() (*SnapshotReader, error)
}

// OpenBody opens the snapshot. The reader checks the body while it reads.
func (s Stored) OpenBody() (*SnapshotReader, error) {
	if s.open == nil {
		return nil, fmt.Errorf("wal: there is no snapshot: %w", os.ErrNotExist)
	}
	return s.open()
}

// Sync is the mode that determines when saved data reaches the disk.
type Sync int

// The sync modes. In every mode, a kill of the process loses no data of a Save that has
// returned. A power failure, or a crash of the operating system, may lose:
const (
	Always   Sync = iota // no data that was saved with sync
	Interval             // the data of the last interval
	None                 // all data since the last snapshot that the operating system has not written yet
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
	Logger   *slog.Logger  // logs new logs, removed incomplete records and slow calls; default none
}

// intervalDefault is short for the data that a power failure may lose, and long compared
// with a sync.
const intervalDefault = 10 * time.Millisecond

func (o Options) withDefaults() (Options, error) {
	if o.Sync < Always || o.Sync > None {
		return o, fmt.Errorf("wal: Options.Sync must be Always, Interval or None, got %v", o.Sync)
	}
	if o.Interval < 0 {
		return o, fmt.Errorf("wal: Options.Interval must not be negative, got %v", o.Interval)
	}
	if o.Interval == 0 {
		o.Interval = intervalDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Errors of this package; compare them with errors.Is.
var (
	ErrFailed   = errors.New("wal: the log has failed")              // an earlier call has failed; open the log again
	ErrClosed   = errors.New("wal: the log is closed")               // Close was called
	ErrNoLog    = errors.New("the directory does not contain a log") // of Verify and Dump; Open would create a log
	ErrInUse    = errors.New("in use by another process")            // or by another Log of this process
	ErrIdentity = errors.New("the log has a different identity")     // every *IdentityError
	ErrDamaged  = errors.New("damaged")                              // every *DamageError
	ErrInvalid  = errors.New("wal: invalid argument")                // a mistake of the caller; the log is unchanged
)

// DamageError reports a file whose content differs from the data that was written to it. The
// package has not changed the disk.
type DamageError struct {
	File   string
	Offset int64 // of the damaged record, or of the damaged part of the file
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: damaged at offset %d: %s", e.File, e.Offset, e.Reason)
}

// Is makes every DamageError match [ErrDamaged].
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// IdentityError reports a log that belongs to a different node or group.
type IdentityError struct {
	Dir       string
	Got, Want Identity // Got is from the log, Want from the caller of Open
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
