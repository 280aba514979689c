package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"slices"
)

// ErrStateDiffers means that the checksum of the state differs from a checksum in the log.
// This replica applied an update differently from the majority, or the program has
// changed.
var ErrStateDiffers = errors.New("fsm: the state differs from its checksum in the log")

const (
	sumBytes    = 8
	votersMax   = 256       // in a snapshot: a group has at most 64 members
	summedMax   = 256 << 20 // bytes: larger states have no automatic marks, because no entry can be applied while the state is encoded, here for about half a second
	marksEvery  = 10_000    // entries: less than a second at full load, and rare enough to cost nothing
	marksClosed = 16        // entries: a checksum can only be compared if it is in the log before the next mark
)

var sumTable = crc64.MakeTable(crc64.ECMA)

// checksums compares the states of the replicas. At a mark in the log each replica
// computes the checksum of its state. Then each voter writes its checksum to the log. A
// checksum that more than half of the voters have is the right one, and a replica with
// another checksum stops. If no checksum can get a majority any more, all replicas
// stop, because the right state is unknown.
type checksums struct {
	at     uint64 // index of the newest mark; 0: none
	sum    uint64 // of this replica at the mark
	known  bool   // sum is valid
	agreed uint64 // newest mark whose checksum a majority of the voters has confirmed
	votes  []vote // for the newest mark, in the order of the log

	marking bool   // the entry that is being applied has a mark
	notes   uint64 // entries with notes since the newest mark; they must not cause the next mark
	bytes   int    // of entries since the newest mark
	size    int    // of the state at the mark
	voters  []uint64
	off     bool
}

// vote is the checksum of one node.
type vote struct{ node, sum uint64 }

// Notes are the commands that a node must write to the log next.
type Notes struct {
	Mark    bool   // by [Batch.Mark], if the node is the leader
	At, Sum uint64 // by [Batch.Sum]; 0: nothing

	Describe bool     // by [Batch.Describe], before any update
	Allowed  *Allowed // the check of updates; nil: none is needed
}

// Notes returns the notes of a node. Between two marks there are at least every
// entries, not counting entries with notes, and at least as many bytes as the state
// has. If every is 0, it is 10,000 entries, and there are no marks while the state has
// more than 256 MiB.
func (r *Replicated[S, U, R]) Notes(node, every uint64) (n Notes) {
	s := &r.checksums
	_, member := slices.BinarySearch(r.announced.members, node)
	n.Describe = member && r.announced.text(node) != r.description
	n.Allowed = r.announced.allowed
	if s.off || !slices.Contains(s.voters, node) {
		return n
	}
	size := max(s.size, r.replay.size)
	if every == 0 && size <= summedMax {
		every = marksEvery
	}
	entries := r.index - s.at
	n.Mark = every != 0 && entries-min(entries, s.notes) >= max(every, marksClosed) && s.bytes >= size
	if s.known && s.agreed < s.at && !s.voted(node) {
		n.At, n.Sum = s.at, s.sum
	}
	return n
}

func (s *checksums) voted(node uint64) bool {
	return slices.ContainsFunc(s.votes, func(v vote) bool { return v.node == node })
}

// mark computes the checksum of the state after an entry.
func (r *Replicated[S, U, R]) mark() {
	s := &r.checksums
	s.marking = false
	s.at, s.known, s.bytes, s.notes, s.votes = r.index, false, 0, 0, s.votes[:0]
	if s.off {
		return
	}
	b, err := r.machine.AppendSnapshot(make([]byte, 0, s.size+s.size/8))
	if err != nil {
		return // a snapshot will report this error
	}
	s.sum, s.known, s.size = crc64.Checksum(b, sumTable), true, len(b)
	if onDisk := len(b) >= largeBytes && r.replay.open != nil; !onDisk && r.verifyMachine(b) == nil { // otherwise the earlier checkpoint remains
		r.replay.advance(b, r.index, r.options.ReplayMax)
	}
}

// vote counts the checksum of a node at a mark. The returned error stops this replica.
func (s *checksums) vote(node, at, sum uint64) error {
	if at != s.at || s.agreed == at || !slices.Contains(s.voters, node) || s.voted(node) {
		return nil
	}
	s.votes = append(s.votes, vote{node, sum})
	right, most, total := s.count()
	switch half := len(s.voters) / 2; {
	case most > half && s.known && right != s.sum:
		return fmt.Errorf("%w: at entry %d the majority of the voters has %016x, this replica has %016x. %s", ErrStateDiffers, s.at, right, s.sum, s.since())
	case most > half:
		s.agreed, s.votes = s.at, s.votes[:0]
	case s.known && most+len(s.voters)-total <= half:
		return fmt.Errorf("%w: at entry %d the voters have different checksums, and no majority: %s. %s", ErrStateDiffers, s.at, s.list(), s.since())
	}
	return nil
}

// count returns the most frequent checksum, its number of votes, and the number of all
// votes.
func (s *checksums) count() (sum uint64, most, total int) {
	n := make(map[uint64]int)
	for _, v := range s.votes {
		if !slices.Contains(s.voters, v.node) {
			continue
		}
		total++
		if n[v.sum]++; n[v.sum] > most {
			sum, most = v.sum, n[v.sum]
		}
	}
	return sum, most, total
}

// since returns between which entries the state started to differ.
func (s *checksums) since() string {
	if s.agreed == 0 {
		return "There is no earlier checksum, so one of the updates up to this entry was applied differently"
	}
	return fmt.Sprintf("At entry %d the states were equal, so an update between the two was applied differently", s.agreed)
}

func (s *checksums) list() (text string) {
	for i, v := range s.votes {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("node %x %016x", v.node, v.sum)
	}
	return text
}

// appendTo appends the part of a snapshot that a starting replica needs.
func (s *checksums) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, s.at)
	known := byte(0)
	if s.known {
		known = 1
	}
	b = binary.LittleEndian.AppendUint64(append(b, known), s.sum)
	b = binary.AppendUvarint(b, s.agreed)
	b = binary.AppendUvarint(b, uint64(len(s.votes)))
	for _, v := range s.votes {
		b = binary.AppendUvarint(b, v.node)
		b = binary.LittleEndian.AppendUint64(b, v.sum)
	}
	return b
}

// checksums reads the checksums of a snapshot up to an index.
func (r *reader) checksums(index uint64) (s checksums) {
	s.at = r.Uint()
	s.known = r.Byte() != 0
	s.sum = r.sum()
	s.agreed = r.Uint()
	n := r.Uint()
	if s.at > index || s.agreed > s.at || n > votersMax {
		r.Fail("invalid checksums: at %d and %d, of %d nodes, in a snapshot at %d", s.at, s.agreed, n, index)
	}
	for ; n > 0 && r.Err == nil; n-- {
		s.votes = append(s.votes, vote{r.Uint(), r.sum()})
	}
	return s
}

func (r *reader) sum() uint64 {
	b := r.Take(sumBytes)
	if len(b) < sumBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}
