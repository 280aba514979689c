package fsm

import (
	"encoding/binary"

	"github.com/topogen/topogen/runtime/internal/fields"
)

// The openers of sessions in a snapshot.
const (
	openerUnknown = iota // an entry of version 1 or 2
	openerClient
	openerNode
	openerKinds
)

// appendTo appends the sessions, least recently used first.
func (t *sessions) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(t.clock))
	b = binary.AppendUvarint(b, uint64(len(t.byNumber)))
	for _, l := range []*list{&t.clientList, &t.nodeList} {
		for s := l.oldest; s != nil; s = s.newer {
			b = s.appendTo(b, t.clock)
		}
	}
	return b
}

func (s *session) appendTo(b []byte, clock int64) []byte {
	b = binary.AppendUvarint(b, s.number)
	switch {
	case s.node != 0:
		b = binary.AppendUvarint(append(b, openerNode), s.node)
	case s.client != "":
		b = fields.AppendText(append(b, openerClient), s.client)
	default:
		b = append(b, openerUnknown)
	}
	b = binary.AppendUvarint(b, s.nonce)
	b = binary.AppendUvarint(b, uint64(clock-s.used))
	b = binary.AppendUvarint(b, s.floor)
	kept := s.kept()
	b = binary.AppendUvarint(b, uint64(len(kept)))
	for i := range kept {
		b = kept[i].appendTo(b, s.floor)
	}
	return b
}

func (r *result) appendTo(b []byte, floor uint64) []byte {
	b = binary.AppendUvarint(b, r.sequence-floor)
	b = binary.AppendUvarint(b, r.index)
	b = binary.AppendUvarint(b, r.term)
	if r.outcome == nil {
		return append(b, 0, 0)
	}
	if r.failure == nil {
		return fields.AppendText(append(b, 0), r.value)
	}
	b = fields.AppendText(append(b, r.failure.kind), r.failure.text)
	b = binary.AppendUvarint(b, uint64(len(r.failure.names)))
	for _, name := range r.failure.names {
		b = fields.AppendText(b, name)
	}
	return b
}

// sessionReader reads the sessions of a snapshot. index is the last entry that the
// snapshot contains.
type sessionReader struct {
	*reader
	version byte
	index   uint64
	options Options
	known   *sentinels
	t       sessions
}

func (r *sessionReader) sessions() sessions {
	most := uint64(r.options.Sessions)
	if r.version >= openersVersion {
		most += nodeSessionsMax
		if r.t.clock = int64(r.Uint()); r.t.clock < 0 {
			r.Fail("the clock of the sessions is %d", r.t.clock)
		}
	}
	n := r.Uint()
	if n > most {
		r.Fail("%d sessions, at most %d", n, most)
	}
	for ; n > 0 && r.Err == nil; n-- {
		r.session()
	}
	return r.t
}

func (r *sessionReader) session() {
	number := r.Uint()
	var o opener
	used := r.t.clock
	if r.version >= openersVersion {
		o = r.opener()
		used -= int64(min(r.Uint(), 1<<63-1))
	}
	floor, results := r.Uint(), r.Uint()
	if number>>positionBits == 0 || number>>positionBits > r.index || r.t.byNumber[number] != nil || floor == 0 {
		r.Fail("an invalid session: number %d, floor %d", number, floor)
		return
	}
	s := r.t.add(number, o)
	s.floor, s.used = floor, used
	if used < 0 || s.older != nil && used < s.older.used || !r.fits() {
		r.Fail("session %d is out of order: used at %d", number, used)
	}
	for ; results > 0 && r.Err == nil; results-- {
		r.result(s)
	}
}

// opener reads the opener of a session.
func (r *sessionReader) opener() (o opener) {
	switch kind := r.Byte(); kind {
	case openerUnknown:
	case openerClient:
		if o.client = r.Text(clientNameMax); o.client == "" {
			r.Fail("the name of a client must not be empty")
		}
	case openerNode:
		if o.node = r.Uint(); o.node == 0 {
			r.Fail("the number of a node must not be 0")
		}
	default:
		r.Fail("unknown opener of kind %d", kind)
	}
	o.nonce = r.Uint()
	return o
}

// fits reports whether the limits for sessions are kept. The newest session of a list
// was read last.
func (r *sessionReader) fits() bool {
	t := &r.t
	for _, s := range []*session{t.clientList.newest, t.nodeList.newest} {
		if s != nil && (len(t.clients[s.client]) > sessionsPerClient || len(t.nodes[s.node]) > sessionsPerNode) {
			return false
		}
	}
	return t.clientList.n <= r.options.Sessions && t.nodeList.n <= nodeSessionsMax
}

func (r *sessionReader) result(s *session) {
	above := r.Uint()
	v := result{sequence: s.floor + above, index: r.Uint(), term: r.Uint()}
	if kind := r.Byte(); kind != 0 {
		v.outcome = &outcome{failure: r.failure(kind)}
	} else if r.version > 1 {
		if value := r.Text(resultBytesMax); value != "" {
			v.outcome = &outcome{value: value}
		}
	}
	kept := s.kept()
	ascends := len(kept) == 0 || kept[len(kept)-1].sequence < v.sequence
	tooMany := r.version < openersVersion && r.t.results >= r.options.Results
	if above >= uint64(r.options.Window) || v.sequence < s.floor || !ascends || v.index == 0 || v.index > r.index || tooMany {
		r.Fail("an invalid result of sequence %d", v.sequence)
		return
	}
	r.t.keep(s, len(kept), &v)
}

// failure reads the rest of a failure after its kind.
func (r *sessionReader) failure(kind byte) *failure {
	if kind >= failureKinds {
		r.Fail("unknown failure of kind %d", kind)
	}
	f := &failure{kind: kind, text: r.Text(failureTextMax)}
	if r.version == 1 {
		return f
	}
	n := r.Uint()
	if n > sentinelsPerError {
		r.Fail("an error with %d names, at most %d", n, sentinelsPerError)
	}
	for ; n > 0 && r.Err == nil; n-- {
		f.names = append(f.names, r.Text(sentinelNameMax))
	}
	r.known.resolve(f)
	return f
}
