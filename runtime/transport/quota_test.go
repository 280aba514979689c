package transport

import "testing"

// TestQuotaForgetsGroups: with any number of groups, a group is remembered while it has
// a queued message, and idle groups may be forgotten.
func TestQuotaForgetsGroups(t *testing.T) {
	q := NewQuota(1, 1)
	kept := Message{Group: 1 << 40}
	q.Take(&kept)
	for g := range uint64(10 * groupsMax) {
		m := Message{Group: g}
		if !q.Take(&m) {
			t.Fatal("the first message of a group was rejected")
		}
		q.Give(m)
	}
	if q.Take(&kept) || q.Waiting() != 1 {
		t.Error("a queued message was forgotten")
	}
	if len(q.use) > groupsMax {
		t.Errorf("%d groups are remembered", len(q.use))
	}
}
