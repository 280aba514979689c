package fsm

import "reflect"

// Unchecked calls f. State machines that f makes do not check failed updates, as
// outside of tests.
func Unchecked(f func()) {
	before := checked
	defer func() { checked = before }()
	checked = func() bool { return false }
	f()
}

// Fingerprint returns the fingerprint of the value that v points to.
func Fingerprint(v any) (sum uint64, values int, ok bool) {
	return fingerprint(reflect.ValueOf(v).Elem(), 1000)
}

// Fingerprints returns for how many updates the fingerprint of the state would be
// computed, if each fingerprint covers all values of state.
func Fingerprints(state []bool, updates int) (n int) {
	c := newChecks(checkedValues)
	v := reflect.ValueOf(&state).Elem()
	c.print = func(v reflect.Value, most int) (uint64, int, bool) { n++; return 0, v.Len(), v.Len() <= most }
	for range updates {
		c.before(v)
	}
	return n
}
