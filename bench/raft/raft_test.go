package raft

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/topogen/topogen/bench/measure"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// proposers are the numbers of proposers in the goals.
var proposers = []int{1, 64, 1024}

// BenchmarkPropose runs each subject separately.
func BenchmarkPropose(b *testing.B) {
	for _, s := range Subjects() {
		for _, callers := range proposers {
			b.Run(fmt.Sprintf("%s/%d", s.Name, callers), func(b *testing.B) {
				g, err := s.Open(b.TempDir(), Load{callers, CommandBytes})
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

// TestSubjectsApplyAll: every subject has applied all proposals.
func TestSubjectsApplyAll(t *testing.T) {
	for _, s := range append(Subjects(), Several(1, 3)...) {
		t.Run(s.Name, func(t *testing.T) {
			const callers, n = 7, 100
			g, err := s.Open(t.TempDir(), Load{callers, CommandBytes})
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
	if _, err := measure.SyncRate(t.TempDir(), time.Millisecond); err != nil {
		t.Error(err)
	}
}

// BenchmarkAlone applies updates on one disk: from callers that wait, and in a topology.
func BenchmarkAlone(b *testing.B) {
	for _, sync := range []wal.Sync{wal.Always, wal.None} {
		for _, way := range Ways() {
			b.Run(fmt.Sprintf("%v/%s", sync, way.Name), func(b *testing.B) {
				a, err := OpenAlone(b.TempDir(), sync, way.inTopology)
				if err != nil {
					b.Fatal(err)
				}
				defer func() {
					if err := a.Close(); err != nil {
						b.Error(err)
					}
				}()
				b.ReportAllocs()
				b.ResetTimer()
				if err := way.feed(a, b.N); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if n, err := a.Applied(); err != nil || n != uint64(b.N) {
					b.Errorf("%d updates, %v, want %d", n, err, b.N)
				}
			})
		}
	}
}

// BenchmarkElection kills the leader once per iteration.
func BenchmarkElection(b *testing.B) {
	timeouts, err := Elections(b.TempDir(), b.N)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(measure.Median(timeouts), "timeouts")
}

// BenchmarkRestart opens a log of a million entries once per iteration.
func BenchmarkRestart(b *testing.B) {
	const entries = 1_000_000
	dir := filepath.Join(b.TempDir(), "log")
	if err := MakeLog(dir, entries); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Restart(dir, entries); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFiguresOfOne: one election and one restart can be measured.
func TestFiguresOfOne(t *testing.T) {
	if v, err := Elections(t.TempDir(), 1); err != nil || len(v) != 1 || v[0] < 0.5 {
		t.Errorf("elections: %v, %v", v, err)
	}
	const entries = 1000
	dir := filepath.Join(t.TempDir(), "log")
	if err := MakeLog(dir, entries); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Restart(dir, entries); err != nil {
			t.Error(err)
		}
	}
}

// TestIdleIsMeasured: the cost of idle groups is measured and is positive.
func TestIdleIsMeasured(t *testing.T) {
	r, err := Idle(2, Effort{Run: 10 * time.Millisecond, Dir: t.TempDir()})
	if err != nil || r.Groups != 2 || r.Goroutines < 6 || r.Heap <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
