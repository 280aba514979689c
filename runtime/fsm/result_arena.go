package fsm

import "strings"

const (
	arenaBytes     = 4 << 10 // bytes of an allocation for many results: the newest one keeps the others in memory, at most once per session
	arenaResultMax = 1 << 10 // a result of at least this size has its own allocation
	arenaOutcomes  = 64      // outcomes in one allocation, limited for the same reason
)

// resultArena stores the bytes of results, many in one allocation. Stored bytes are
// never overwritten.
type resultArena struct {
	b     strings.Builder
	spare []outcome
}

func (a *resultArena) keep(b []byte) *outcome {
	if len(a.spare) == 0 {
		a.spare = make([]outcome, arenaOutcomes)
	}
	o := &a.spare[0]
	a.spare = a.spare[1:]
	o.value = a.text(b)
	return o
}

func (a *resultArena) text(b []byte) string {
	if len(b) >= arenaResultMax {
		return string(b)
	}
	if a.b.Cap()-a.b.Len() < len(b) {
		a.b.Reset()
		a.b.Grow(arenaBytes)
	}
	begin := a.b.Len()
	a.b.Write(b)
	return a.b.String()[begin:]
}
