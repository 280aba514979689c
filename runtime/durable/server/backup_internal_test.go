package server

import (
	"testing"
	"time"
)

// TestBackupDeadline: a reader may pause, and must not be slow.
func TestBackupDeadline(t *testing.T) {
	begin := time.Now()
	for _, test := range []struct {
		sent        int64
		at, allowed time.Duration // since the begin
	}{
		{0, 0, 30 * time.Second},
		{0, 10 * time.Second, 30 * time.Second},
		{backupRateMin, 10 * time.Second, 31 * time.Second},
		{100 * backupRateMin, 10 * time.Second, 40 * time.Second}, // a fast reader may not pause for longer
		{100 * backupRateMin, 120 * time.Second, 130 * time.Second},
		{100 * backupRateMin, 140 * time.Second, 130 * time.Second}, // it is late
	} {
		b := &backup{stall: 30 * time.Second, begin: begin, sent: test.sent}
		if got := b.deadline(begin.Add(test.at)).Sub(begin); got != test.allowed {
			t.Errorf("%d bytes after %v: the deadline is after %v, want %v", test.sent, test.at, got, test.allowed)
		}
	}
}
