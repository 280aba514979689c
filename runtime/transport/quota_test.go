package transport

import "testing"

// TestQuotaForgetsGroups: however many groups there were, a group is remembered
// while a message of it waits, and all others may be forgotten.
func TestQuotaForgetsGroups(t *testing.T) {
	q := NewQuota(1, 1)
	kept := Message{Group: 1 << 40}
	q.Take(&kept)
	for g := range uint64(10 * groupsMax) {
		m := Message{Group: g}
		if !q.Take(&m) {
			t.Fatal("there is no room for the first message of a group")
		}
		q.Give(m)
	}
	if q.Take(&kept) || q.Waiting() != 1 {
		t.Error("a message that waits was forgotten")
	}
	if len(q.use) > groupsMax {
		t.Errorf("%d groups are remembered", len(q.use))
	}
}
