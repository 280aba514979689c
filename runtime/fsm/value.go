package fsm

import "strings"

const (
	valuesBytes     = 4 << 10 // of results that stand together: the last that is remembered keeps the others, in as many places as there are sessions at most
	valueBytesAlone = 1 << 10 // a result from this on stands alone
)

// values are where the bytes of results stand: many in one allocation, and none is
// written again.
type values struct{ b strings.Builder }

func (v *values) keep(b []byte) string {
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
