package fsm

import (
	"cmp"
	"slices"
)

// sessions holds the sessions of all clients and nodes. Every replica executes the same
// commands in the same order, so all replicas forget the same sessions.
type sessions struct {
	byNumber map[uint64]*session
	clients  map[string][]*session
	nodes    map[uint64][]*session
	last     *session // result of the last find

	clientList, nodeList list
	clock                int64 // the log's time, with long gaps shortened
	results              int   // kept by all sessions
	size                 int   // of these results
}

// list holds sessions, ordered by last use.
type list struct {
	oldest, newest *session
	n              int
}

// link makes s the newest.
func (l *list) link(s *session) {
	s.older, s.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = s
	} else {
		l.oldest = s
	}
	l.newest = s
	l.n++
}

func (l *list) unlink(s *session) {
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		l.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		l.newest = s.older
	}
	s.older, s.newer = nil, nil
	l.n--
}

func (t *sessions) listOf(s *session) *list {
	if s.node != 0 {
		return &t.nodeList
	}
	return &t.clientList
}

// find returns the session with a number, or nil, and makes it the most recently used
// one.
func (t *sessions) find(number uint64) *session {
	s := t.last
	if s == nil || s.number != number {
		if s = t.byNumber[number]; s == nil {
			return nil
		}
		t.last = s
	}
	t.use(s)
	return s
}

func (t *sessions) use(s *session) {
	s.used = t.clock
	if s.newer != nil {
		l := t.listOf(s)
		l.unlink(s)
		l.link(s)
	}
}

// add adds a session.
func (t *sessions) add(number uint64, o opener) *session {
	s := &session{number: number, opener: o, used: t.clock, floor: 1}
	if t.byNumber == nil {
		t.byNumber, t.clients, t.nodes = make(map[uint64]*session), make(map[string][]*session), make(map[uint64][]*session)
	}
	t.byNumber[number] = s
	switch {
	case o.node != 0:
		t.nodes[o.node] = append(t.nodes[o.node], s)
	case o.client != "":
		t.clients[o.client] = append(t.clients[o.client], s)
	}
	t.listOf(s).link(s)
	return s
}

// tick advances the clock by the change of the log's time, and forgets clients'
// sessions that were not used for ttl. A long gap advances the clock by only a part of
// ttl, so a clock that jumps ends no session.
func (t *sessions) tick(by, ttl int64) {
	t.clock += min(by, max(ttl/sessionGaps, 1))
	for t.clientList.oldest != nil && t.clock-t.clientList.oldest.used > ttl {
		t.forget(t.clientList.oldest)
	}
}

// open opens a session, or returns the existing one if the command is a repetition. It
// returns nil if there are too many sessions. It never ends the session of another
// client. If the table is full, it ends another session of the same client.
func (t *sessions) open(number uint64, o opener, max int) *session {
	own, most := t.clients[o.client], sessionsPerClient
	if o.node != 0 {
		own, most = t.nodes[o.node], sessionsPerNode
	}
	for _, s := range own {
		if s.nonce == o.nonce {
			t.use(s)
			return s
		}
	}
	full := o.node == 0 && t.clientList.n >= max
	switch {
	case len(own) >= most, full && len(own) > 0:
		t.forget(leastUsed(own))
	case full:
		return nil
	case o.node != 0 && t.nodeList.n >= nodeSessionsMax:
		t.forget(t.nodeList.oldest)
	}
	return t.add(number, o)
}

// leastUsed returns the session that was used longest ago. Of sessions with the same
// time it returns the oldest one.
func leastUsed(list []*session) *session {
	return slices.MinFunc(list, func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.number, b.number))
	})
}

// openUnbounded opens a session for an entry of version 1 or 2, which ended sessions of
// other clients if there were too many.
func (t *sessions) openUnbounded(number uint64, max int) *session {
	s := t.add(number, opener{})
	for t.clientList.n > max {
		t.forget(t.clientList.oldest)
	}
	return s
}

// raise raises the floor of a session and forgets the results below it.
func (t *sessions) raise(s *session, floor uint64) {
	if floor <= s.floor {
		return
	}
	results, size := len(s.kept()), s.size
	s.raise(floor)
	t.results -= results - len(s.kept())
	t.size -= size - s.size
}

// resultsFull reports whether a session may not keep another result: it keeps too many,
// or all sessions together keep too many and this one more than its share.
func (t *sessions) resultsFull(s *session, o *Options) bool {
	return s.size >= sessionSizeMax || t.size >= o.Results && s.node == 0 && s.size > o.Results/o.Sessions
}

// keep stores a result in a session.
func (t *sessions) keep(s *session, i int, r *result) {
	s.keep(i, r)
	size := r.size()
	s.size += size
	t.size += size
	t.results++
}

// keepUnbounded stores a result for an entry of version 1 or 2, which ended sessions of
// other clients if there were too many results.
func (t *sessions) keepUnbounded(s *session, i int, r *result, max int) {
	t.keep(s, i, r)
	for t.results > max && t.clientList.oldest != s {
		t.forget(t.clientList.oldest)
	}
}

func (t *sessions) forget(s *session) {
	t.results -= len(s.kept())
	t.size -= s.size
	delete(t.byNumber, s.number)
	t.listOf(s).unlink(s)
	switch {
	case s.node != 0:
		removeSession(t.nodes, s.node, s)
	case s.client != "":
		removeSession(t.clients, s.client, s)
	}
	if t.last == s {
		t.last = nil
	}
}

// removeSession removes a session from the list of its client or node.
func removeSession[K comparable](byKey map[K][]*session, key K, s *session) {
	list := byKey[key]
	for i := range list {
		if list[i] == s {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if byKey[key] = list; len(list) == 0 {
		delete(byKey, key)
	}
}
