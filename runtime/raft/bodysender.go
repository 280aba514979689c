package raft

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	partTries  = 10 // how often a part is sent again before the transfer ends
	retriesMax = 6  // the wait before a failed snapshot is sent again doubles at most this often; it begins with one election timeout
)

// bodySender sends the body of a snapshot in parts. It has no clock: its methods receive
// the ticks of the node.
type bodySender struct {
	transfer       uint64
	size           uint64
	bytes          int           // size of a part
	body           io.ReadCloser // at the offset read
	read           uint64        // bytes read from body
	acknowledged   uint64        // bytes that the receiver has acknowledged
	unacknowledged []part        // parts that were read and are not acknowledged
	next           int           // index in unacknowledged of the next part to send
	allRead        bool          // the whole body was read
	complete       bool
	progressTick   int64 // tick of the last progress
	tries          int   // repetitions since the last progress
}

// sendParts calls send for each part that may be sent now.
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

// readNext reads the next part.
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

// takeReceipt handles a receipt. After errReceiverLost the body must be sent from its
// beginning.
func (s *bodySender) takeReceipt(r *receipt, tick int64) error {
	switch {
	case r.transfer != s.transfer || r.received > s.size:
		return nil // of another transfer, or invalid
	case r.state == receiptRefused:
		return fmt.Errorf("the receiver refuses the snapshot: %q", r.reason)
	case r.state == receiptUnknown && s.acknowledged > 0:
		return errReceiverLost
	case r.state == receiptUnknown:
		return nil // the first part is lost or late
	}
	switch behind := r.received < s.acknowledged && r.state == receiptOpen; {
	case behind && s.tries > 0: // the receiver has restarted, and its new transfer has begun with a late part
		return errReceiverLost
	case behind, r.received == s.acknowledged && r.received < s.size && r.state == receiptOpen:
		return nil // a repeated receipt, or a receipt for a part behind a gap
	}
	s.progressTick, s.tries = tick, 0
	s.complete = s.complete || r.state == receiptComplete
	return s.advance(r.received)
}

// advance removes the parts that are acknowledged, except the last one. The last part is
// kept, so that it can be sent again if the final receipt is lost.
func (s *bodySender) advance(received uint64) error {
	s.acknowledged = max(s.acknowledged, received)
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
	_, err := io.CopyN(io.Discard, s.body, int64(to-s.read)) // the receiver already has these bytes
	s.read = to
	return err
}

// resendOverdue repeats the unacknowledged parts after a timeout. It returns an error
// after too many repetitions.
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
