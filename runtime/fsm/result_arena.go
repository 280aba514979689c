package fsm

import "strings"

const (
	arenaBytes     = 4 << 10 // of results that stand together: the last that is remembered keeps the others, in as many places as there are sessions at most
	arenaResultMax = 1 << 10 // a result from this on stands alone
	arenaOutcomes  = 64      // in one allocation, for the same reason not more
)

// values are where the bytes of results stand: many in one allocation, and none is
// written again.
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
