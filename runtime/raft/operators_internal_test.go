package raft

import "testing"

// TestAProcessWithoutAGroup: a command to a process without a group returns an error that says why.
func TestAProcessWithoutAGroup(t *testing.T) {
	const want = "this process has no group yet: it is starting, or about to end"
	if _, _, err := new(operators).find("ledger"); err == nil || err.Error() != want {
		t.Errorf("got the error %v, want %q", err, want)
	}
}
