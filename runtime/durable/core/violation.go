package core

// A Violation is an entry of the store that breaks an invariant.
type Violation struct {
	Invariant string // a name of the protocol, such as orphan_invokes, or of this package
	ID        string // the promise, task or schedule
	Detail    string
}

func (v Violation) String() string { return v.Invariant + ": " + v.ID + ": " + v.Detail }

// Check returns the violations of the invariants of a store. It reads the whole store.
func Check(kv KV, now Instant) []Violation {
	return nil
}
