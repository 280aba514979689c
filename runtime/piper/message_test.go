package piper_test

import "math/bits"

// message is a message of a topology under test. It records its sender, its receiver,
// and its number among the messages between them.
type message struct {
	origin int    // id of the cell or caller that sent it
	to     int    // id of the cell that it is for
	edge   int    // index of the edge
	seq    uint64 // its number among all messages from origin to that cell, from 1
	lane   uint64 // its number among those along this edge, from 1
	key    uint64 // the key, if the edge is keyed
	keyed  bool
	hops   int    // how many further messages may follow from it, one after the other
	sum    uint64 // checksum of the fields above: it does not match if a message is read too early or too late
}

func (m *message) checksum() uint64 {
	sum := uint64(0x9e3779b97f4a7c15)
	for _, v := range [...]uint64{uint64(m.origin), uint64(m.to), uint64(m.edge), m.seq, m.lane, m.key, uint64(m.hops)} {
		sum = bits.RotateLeft64(sum^v, 23) * 0xbf58476d1ce4e5b9
	}
	return sum
}

// stamps numbers the messages of a sender. It belongs to the sender's goroutine.
type stamps struct {
	id   int
	to   map[int]*trail // by id of the receiving cell
	sent []uint64       // by edge
}

// trail counts the messages from one sender to one cell.
type trail struct {
	seq  uint64
	lane []uint64 // by edge
}

// stamp completes a message before it is sent.
func (s *stamps) stamp(m message, edge int, to *cell) message {
	edges := len(to.top.edges)
	if s.to == nil {
		s.to, s.sent = make(map[int]*trail), make([]uint64, edges)
	}
	r := s.to[to.stamps.id]
	if r == nil {
		r = &trail{lane: make([]uint64, edges)}
		s.to[to.stamps.id] = r
	}
	r.seq++
	r.lane[edge]++
	s.sent[edge]++
	m.origin, m.to, m.edge, m.seq, m.lane = s.id, to.stamps.id, edge, r.seq, r.lane[edge]
	m.sum = m.checksum()
	return m
}
