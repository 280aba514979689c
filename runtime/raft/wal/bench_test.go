package wal_test

import (
	"fmt"
	"testing"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// largeSegments sets the size of segments that the package uses outside of tests.
func largeSegments(b *testing.B) {
	etcdwal.SegmentSizeBytes = 16 << 20
	b.Cleanup(func() { etcdwal.SegmentSizeBytes = segmentBytes })
}

func BenchmarkSave(b *testing.B) {
	largeSegments(b)
	for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		for _, n := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("%v/entries=%d", mode, n), func(b *testing.B) {
				l, _, err := wal.Open(b.TempDir(), own, wal.Options{Sync: mode})
				if err != nil {
					b.Fatal(err)
				}
				data := make([]byte, 64)
				entries := make([]*raftpb.Entry, n)
				index := uint64(0)
				b.ReportAllocs()
				for b.Loop() {
					for i := range entries {
						index++
						entries[i] = &raftpb.Entry{Index: new(index), Term: new(uint64(1)), Data: data}
					}
					if err := l.Save(state(1, 1, index), entries, true); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(index), "ns/entry")
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkOpen opens a log with a million entries and a snapshot.
func BenchmarkOpen(b *testing.B) {
	speed.Landing(b)
	largeSegments(b)
	const count = 1_000_000
	dir := b.TempDir()
	l, _, err := wal.Open(dir, own, wal.Options{Sync: wal.None})
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 64)
	for i := uint64(1); i <= count; i++ {
		var entries []*raftpb.Entry
		for ; len(entries) < 1000; i++ {
			entries = append(entries, &raftpb.Entry{Index: new(i), Term: new(uint64(1)), Data: data})
		}
		i--
		if err := l.Save(state(1, 1, i), entries, false); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.SaveSnapshot(snapshot(1, 1, string(make([]byte, 1<<20)))); err != nil {
		b.Fatal(err)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l, s, err := wal.Open(dir, own, wal.Options{})
		if err != nil || len(s.Entries) != count-1 {
			b.Fatal(len(s.Entries), err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
