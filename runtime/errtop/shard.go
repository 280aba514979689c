package errtop

import "sync"

const (
	shardsMax = 64 // more than the processors of most computers; two workers may share a shard
	causesMax = 32 // per shard: rarely reached between two dumps, and little memory
)

// cause identifies an occurrence before its stack is converted to text. Recording it
// costs a worker little more than a map lookup.
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

// shard holds the records of the workers that share it, since the last merge.
type shard struct {
	mu      sync.Mutex
	tallies []tally       // in the order of the first occurrence
	index   map[cause]int // index in tallies
	_       [128]byte     // two cache lines, because neighbours are fetched in pairs
}

// add counts an occurrence; it returns false if the shard is full.
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
