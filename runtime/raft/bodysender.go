package raft

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	partTries  = 10 // times that a part is sent again before the transfer ends
	retriesMax = 6  // doublings of the wait, in election timeouts, before a snapshot that failed is sent again
)

// shipment is a body on its way to a peer. It has no clock: it is told the ticks of the
// node.
type bodySender struct {
	transfer       uint64
	size           uint64
	bytes          int           // of a part
	body           io.ReadCloser // up to where it was read
	read           uint64        // bytes of it
	acknowledged   uint64        // bytes that the receiver has
	unacknowledged []part        // what was read and did not come, or was not acknowledged
	next           int           // of waits: the first that is to be sent
	allRead        bool          // all was read
	complete       bool
	progressTick   int64 // tick of the last progress
	tries          int   // since then
}

// parts calls send for the parts that may go now.
func (s *bodySender) sendParts(send func(*part)) error {
	for !s.complete {
		if s.next == len(s.unacknowledged) {
			if s.allRead || len(s.unacknowledged) >= partsOnTheWay {
				return nil
			}
			if err := s.readNext(); err != nil {
				return err
			}
		}
		send(&s.unacknowledged[s.next])
		s.next++
	}
	return nil
}

// more reads the next part.
func (s *bodySender) readNext() error {
	data := make([]byte, min(uint64(s.bytes), s.size-s.read))
	if _, err := io.ReadFull(s.body, data); err != nil {
		return err
	}
	s.unacknowledged = append(s.unacknowledged, part{transfer: s.transfer, size: s.size, offset: s.read, data: data})
	s.read += uint64(len(data))
	s.allRead = s.read == s.size
	return nil
}

var errReceiverLost = errors.New("the receiver lost the parts that it had")

// receipt takes an answer. errUnknown says that the body is to be sent from its beginning.
func (s *bodySender) takeReceipt(r *receipt, tick int64) error {
	switch {
	case r.transfer != s.transfer || r.received > s.size:
		return nil // of another, or nonsense
	case r.state == receiptRefused:
		return fmt.Errorf("the receiver refuses the snapshot: %q", r.reason)
	case r.state == receiptUnknown && s.acknowledged > 0:
		return errReceiverLost
	case r.state == receiptUnknown:
		return nil // the first part is lost, or comes late
	}
	switch behind := r.received < s.acknowledged && r.state == receiptOpen; {
	case behind && s.tries > 0: // it was started again, and has begun again with a part that came late
		return errReceiverLost
	case behind, r.received == s.acknowledged && r.received < s.size && r.state == receiptOpen:
		return nil // an earlier one again, or behind a gap
	}
	s.progressTick, s.tries = tick, 0
	s.complete = s.complete || r.state == receiptComplete
	return s.advance(r.received)
}

// advance forgets the parts that have come, but for the last one of the body: it asks
// again where the answer is lost that the receiver has all.
func (s *bodySender) advance(came uint64) error {
	s.acknowledged = max(s.acknowledged, came)
	n := 0
	for n < len(s.unacknowledged) {
		end := s.unacknowledged[n].offset + uint64(len(s.unacknowledged[n].data))
		if end > s.acknowledged || end == s.size && !s.complete {
			break
		}
		n++
	}
	s.unacknowledged, s.next = slices.Delete(s.unacknowledged, 0, n), max(0, s.next-n)
	to := s.acknowledged
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

// late has the parts sent again for which there was no receipt, when the timeout has
// passed. An error says that it was in vain too often.
func (s *bodySender) resendOverdue(tick, timeout int64) error {
	if s.complete || tick-s.progressTick < timeout {
		return nil
	}
	if s.tries++; s.tries > partTries {
		return fmt.Errorf("no answer after %d of %d bytes", s.acknowledged, s.size)
	}
	s.progressTick, s.next = tick, 0
	return nil
}
