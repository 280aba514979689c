package fsm

import "reflect"

// Unchecked calls f, in which machines are made as they are outside of tests:
// without checks.
func Unchecked(f func()) {
	before := checked
	defer func() { checked = before }()
	checked = func() bool { return false }
	f()
}

// Fingerprint is the fingerprint of what v points to.
func Fingerprint(v any) (sum uint64, values int, ok bool) {
	return fingerprint(reflect.ValueOf(v).Elem(), 1000)
}

// Fingerprints is of how many updates the state's fingerprint would be taken, where
// it has so many values each time.
func Fingerprints(state []bool, updates int) (n int) {
	c := newChecks(checkedValues)
	v := reflect.ValueOf(&state).Elem()
	c.print = func(v reflect.Value, most int) (uint64, int, bool) { n++; return 0, v.Len(), v.Len() <= most }
	for range updates {
		c.before(v)
	}
	return n
}
