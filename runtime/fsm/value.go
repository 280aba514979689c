package fsm

import "strings"

const (
	valuesBytes     = 4 << 10 // of results that stand together: the last that is remembered keeps the others, in as many places as there are sessions at most
	valueBytesAlone = 1 << 10 // a result from this on stands alone
	outcomesAtOnce  = 64      // in one allocation, for the same reason not more
)

// values are where the bytes of results stand: many in one allocation, and none is
// written again.
type values struct {
	b     strings.Builder
	spare []outcome
}

func (v *values) keep(b []byte) *outcome {
	if len(v.spare) == 0 {
		v.spare = make([]outcome, outcomesAtOnce)
	}
	o := &v.spare[0]
	v.spare = v.spare[1:]
	o.value = v.text(b)
	return o
}

func (v *values) text(b []byte) string {
	if len(b) >= valueBytesAlone {
		return string(b)
	}
	if v.b.Cap()-v.b.Len() < len(b) {
		v.b.Reset()
		v.b.Grow(valuesBytes)
	}
	begin := v.b.Len()
	v.b.Write(b)
	return v.b.String()[begin:]
}
