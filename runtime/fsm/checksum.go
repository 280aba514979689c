package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"slices"
)

// ErrStateDiffers: the state is not what a checksum in the log says. The replica has
// applied an update differently from the majority, or from the program before.
var ErrStateDiffers = errors.New("fsm: the state differs from its checksum in the log")

const (
	sumBytes    = 8
	votersMax   = 256       // in a snapshot: a group has 64 members at most
	summedMax   = 256 << 20 // bytes of a state that is summed by itself: no entry is applied for as long as writing it takes, about half a second
	marksEvery  = 10_000    // entries: less than a second at full load, and seldom enough to cost nothing
	marksClosed = 16        // entries: for a sum to be compared, it must be in the log before the next mark
)

var sumTable = crc64.MakeTable(crc64.ECMA)

// sums compare the states of replicas. A mark in the log is where each replica sums its
// state up; then each voter says its sum in another entry. A sum that more than half of
// the voters say is the right one, and a replica that has another one there fails. Where
// no sum can have so many any more, all fail: none is known to be right.
type checksums struct {
	at     uint64 // index of the newest mark; 0: none
	sum    uint64 // of this replica there
	known  bool   // sum is
	agreed uint64 // newest mark whose sum more than half of the voters have said
	votes  []vote // for the newest mark, by who was first

	marking bool   // the entry that is being applied has a mark
	notes   uint64 // in entries since the newest mark, which must not lead to the next one by themselves
	bytes   int    // of entries since the newest mark
	size    int    // of the state there
	voters  []uint64
	off     bool
}

// vote is the sum that a node has.
type vote struct{ node, sum uint64 }

// Notes are what a node is to say in the log, and what is not in there yet.
type Notes struct {
	Mark    bool   // by [Batch.Mark], where the node leads
	At, Sum uint64 // by [Batch.Sum]; 0: nothing

	Describe bool     // by [Batch.Describe], before any update
	Allowed  *Allowed // what updates may have; nil: all
}

// Notes returns those of a node. Between two marks are at least every entries, without
// those of notes, and as many bytes as the state has. 0 stands for 10,000 entries, and no
// marks while the state has more than 256 MiB.
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

// mark sums the state up, behind an entry.
func (r *Replicated[S, U, R]) mark() {
	s := &r.checksums
	s.marking = false
	s.at, s.known, s.bytes, s.notes, s.votes = r.index, false, 0, 0, s.votes[:0]
	if s.off {
		return
	}
	b, err := r.machine.AppendSnapshot(make([]byte, 0, s.size+s.size/8))
	if err != nil {
		return // that is told to those who ask for a snapshot
	}
	s.sum, s.known, s.size = crc64.Checksum(b, sumTable), true, len(b)
	if len(b) < largeBytes || r.replay.open == nil { // else the checkpoint stays on the disk
		r.replay.advance(b, r.index, r.options.ReplayMax)
	}
}

// vote takes the sum of a node at a mark. The error is one that ends this replica.
func (s *checksums) vote(node, at, sum uint64) error {
	if at != s.at || s.agreed == at || !slices.Contains(s.voters, node) || s.voted(node) {
		return nil
	}
	s.votes = append(s.votes, vote{node, sum})
	right, most, said := s.count()
	switch half := len(s.voters) / 2; {
	case most > half && s.known && right != s.sum:
		return fmt.Errorf("%w: at entry %d most of the voters have %016x, and this replica has %016x. %s", ErrStateDiffers, s.at, right, s.sum, s.since())
	case most > half:
		s.agreed, s.votes = s.at, s.votes[:0]
	case s.known && most+len(s.voters)-said <= half:
		return fmt.Errorf("%w: at entry %d the voters have different sums, none of which most of them have: %s. %s", ErrStateDiffers, s.at, s.list(), s.since())
	}
	return nil
}

// count returns the sum that most of the voters say, how many do, and how many have said
// one.
func (s *checksums) count() (sum uint64, most, said int) {
	n := make(map[uint64]int)
	for _, v := range s.votes {
		if !slices.Contains(s.voters, v.node) {
			continue
		}
		said++
		if n[v.sum]++; n[v.sum] > most {
			sum, most = v.sum, n[v.sum]
		}
	}
	return sum, most, said
}

// since says between which entries the state became another one.
func (s *checksums) since() string {
	if s.agreed == 0 {
		return "There is no earlier checksum, so an update up to there was applied differently"
	}
	return fmt.Sprintf("At entry %d all was equal, so an update between the two was applied differently", s.agreed)
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

// appendTo appends what a replica that begins with a snapshot has to know.
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

// sums reads them from a snapshot of a log up to an index.
func (r *reader) checksums(index uint64) (s checksums) {
	s.at = r.uint()
	s.known = r.byte() != 0
	s.sum = r.sum()
	s.agreed = r.uint()
	n := r.uint()
	if s.at > index || s.agreed > s.at || n > votersMax {
		r.fail("checksums at %d and %d of %d nodes, in a snapshot at %d", s.at, s.agreed, n, index)
	}
	for ; n > 0 && r.err == nil; n-- {
		s.votes = append(s.votes, vote{r.uint(), r.sum()})
	}
	return s
}

func (r *reader) sum() uint64 {
	b := r.take(sumBytes)
	if len(b) < sumBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}
