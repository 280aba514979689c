package raft

import (
	"fmt"
	"testing"
	"time"
)

// proposers are the numbers that goals name.
var proposers = []int{1, 64, 1024}

// BenchmarkPropose runs every subject by itself.
func BenchmarkPropose(b *testing.B) {
	for _, s := range Subjects() {
		for _, callers := range proposers {
			b.Run(fmt.Sprintf("%s/%d", s.Name, callers), func(b *testing.B) {
				g, err := s.Open(b.TempDir(), callers)
				if err != nil {
					b.Fatal(err)
				}
				defer func() {
					if err := g.Close(); err != nil {
						b.Error(err)
					}
				}()
				b.ReportAllocs()
				b.ResetTimer()
				if err := Drive(g, callers, b.N); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
			})
		}
	}
}

// TestSubjectsApplyAll: whatever is measured has applied what was proposed.
func TestSubjectsApplyAll(t *testing.T) {
	for _, s := range Subjects() {
		t.Run(s.Name, func(t *testing.T) {
			const callers, n = 7, 100
			g, err := s.Open(t.TempDir(), callers)
			if err != nil {
				t.Fatal(err)
			}
			if err := Drive(g, callers, n); err != nil {
				t.Error(err)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := SyncRate(t.TempDir(), time.Millisecond); err != nil {
		t.Error(err)
	}
}
