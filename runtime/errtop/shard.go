package errtop

import "sync"

const (
	shardsMax = 64 // more than the processors of most machines; two workers may share one
	causesMax = 32 // of one shard: rarely filled between two dumps, and little memory
)

// cause is what an occurrence is known by before its stack is made text: taking
// it costs a worker no more than a look into a map.
type cause struct {
	where, reason string // cut to their limits
	trace         string // of a panic
	pcs           [stackMax]uintptr
}

func (c *cause) text() string {
	if c.trace != "" {
		return textOf(c.where, c.reason, c.trace)
	}
	n := 0
	for n < stackMax && c.pcs[n] != 0 {
		n++
	}
	return textOf(c.where, c.reason, Stack(c.pcs[:n]).trace())
}

// tally counts the occurrences of a cause since the last merge.
type tally struct {
	cause
	count uint64
	last  int64
}

// shard is what the workers of one place have recorded since the last merge.
type shard struct {
	mu      sync.Mutex
	tallies []tally       // as they occurred first
	index   map[cause]int // into tallies
	_       [128]byte     // two lines: neighbours are fetched in pairs
}

// add counts an occurrence; it returns false where the shard is full.
func (s *shard) add(c *cause, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, known := s.index[*c]
	if !known {
		if len(s.tallies) == causesMax {
			return false
		}
		if s.index == nil {
			s.index = make(map[cause]int)
		}
		i = len(s.tallies)
		s.index[*c] = i
		s.tallies = append(s.tallies, tally{cause: *c, last: now})
	}
	t := &s.tallies[i]
	t.count++
	t.last = max(t.last, now)
	return true
}

// take empties the shard.
func (s *shard) take() []tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.tallies
	s.tallies = nil
	clear(s.index)
	return taken
}
