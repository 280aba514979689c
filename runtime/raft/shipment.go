package raft

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	shipmentTries = 10 // times that a part is sent again before the transfer ends
	retriesMax    = 6  // doublings of the wait, in election timeouts, before a snapshot that failed is sent again
)

// shipment is a body on its way to a peer. It has no clock: it is told the ticks of the
// node.
type shipment struct {
	transfer uint64
	size     uint64
	bytes    int           // of a part
	body     io.ReadCloser // up to where it was read
	read     uint64        // bytes of it
	came     uint64        // bytes that the receiver has
	waits    []part        // what was read and did not come, or was not acknowledged
	next     int           // of waits: the first that is to be sent
	ended    bool          // all was read
	complete bool
	moved    int64 // tick of the last progress
	tries    int   // since then
}

// parts calls send for the parts that may go now.
func (s *shipment) parts(send func(*part)) error {
	for !s.complete {
		if s.next == len(s.waits) {
			if s.ended || len(s.waits) >= partsOnTheWay {
				return nil
			}
			if err := s.more(); err != nil {
				return err
			}
		}
		send(&s.waits[s.next])
		s.next++
	}
	return nil
}

// more reads the next part.
func (s *shipment) more() error {
	data := make([]byte, min(uint64(s.bytes), s.size-s.read))
	if _, err := io.ReadFull(s.body, data); err != nil {
		return err
	}
	s.waits = append(s.waits, part{transfer: s.transfer, size: s.size, offset: s.read, data: data})
	s.read += uint64(len(data))
	s.ended = s.read == s.size
	return nil
}

var errUnknown = errors.New("the receiver has lost what it had")

// receipt takes an answer. errUnknown says that the body is to be sent from its beginning.
func (s *shipment) receipt(r *receipt, tick int64) error {
	switch {
	case r.transfer != s.transfer || r.came > s.size:
		return nil // of another, or nonsense
	case r.state == receiptRefused:
		return fmt.Errorf("the receiver refuses it: %q", r.refused)
	case r.state == receiptUnknown && s.came > 0:
		return errUnknown
	case r.state == receiptUnknown:
		return nil // the first part is lost, or comes late
	}
	switch behind := r.came < s.came && r.state == receiptOpen; {
	case behind && s.tries > 0: // it was started again, and has begun again with a part that came late
		return errUnknown
	case behind, r.came == s.came && r.came < s.size && r.state == receiptOpen:
		return nil // an earlier one again, or behind a gap
	}
	s.moved, s.tries = tick, 0
	s.complete = s.complete || r.state == receiptComplete
	return s.advance(r.came)
}

// advance forgets the parts that have come, but for the last one of the body: it asks
// again where the answer is lost that the receiver has all.
func (s *shipment) advance(came uint64) error {
	s.came = max(s.came, came)
	n := 0
	for n < len(s.waits) {
		end := s.waits[n].offset + uint64(len(s.waits[n].data))
		if end > s.came || end == s.size && !s.complete {
			break
		}
		n++
	}
	s.waits, s.next = slices.Delete(s.waits, 0, n), max(0, s.next-n)
	to := s.came
	if to == s.size {
		to -= min(s.size, uint64(s.bytes))
	}
	if s.complete || to <= s.read {
		return nil
	}
	_, err := io.CopyN(io.Discard, s.body, int64(to-s.read)) // the receiver has it from before
	s.read = to
	return err
}

// late has the parts sent again for which there was no receipt, when the patience has
// passed. An error says that it was in vain too often.
func (s *shipment) late(tick, patience int64) error {
	if s.complete || tick-s.moved < patience {
		return nil
	}
	if s.tries++; s.tries > shipmentTries {
		return fmt.Errorf("no answer after %d of %d bytes", s.came, s.size)
	}
	s.moved, s.next = tick, 0
	return nil
}
