package durable

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

func open(t testing.TB, s Subject) *System {
	system, err := s.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	return system
}

func TestMain(m *testing.M) {
	SendIfAsked()
	m.Run()
}

// TestSubjectsDoTheWork: each promise of a run is settled afterwards.
func TestSubjectsDoTheWork(t *testing.T) {
	for _, subject := range Subjects() {
		t.Run(subject.Name, func(t *testing.T) {
			s := open(t, subject)
			if n, err := s.CreateSettle(7, forTimes(100)); err != nil || n != 200 {
				t.Errorf("create+settle: %d operations, %v", n, err)
			}
			c, err := s.OpenCycles()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if n, err := c.Run(7, forTimes(100)); err != nil || n != 100 {
				t.Errorf("%d cycles, %v", n, err)
			}
			states := map[protocol.PromiseState]int{}
			for cursor := ""; ; {
				res, err := do(context.Background(), s, protocol.PromiseSearch{Cursor: cursor, Limit: 1000})
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range res.Promises {
					states[p.State]++
				}
				if cursor = res.Cursor; cursor == "" {
					break
				}
			}
			if states[protocol.Resolved] != 200 || len(states) != 1 {
				t.Errorf("the promises have states %v", states)
			}
			if !subject.HTTP {
				return
			}
			if l, err := s.Creates(1000, 50*time.Millisecond); err != nil || len(l) != 50 {
				t.Errorf("%d creates, %v", len(l), err)
			}
		})
	}
}

// BenchmarkCreateSettle runs each subject separately. An iteration is one create and one
// settle.
func BenchmarkCreateSettle(b *testing.B) {
	for _, subject := range Subjects() {
		for _, clients := range Clients {
			b.Run(fmt.Sprintf("%s/%d", subject.Name, clients), func(b *testing.B) {
				s := open(b, subject)
				b.ReportAllocs()
				b.ResetTimer()
				if _, err := s.CreateSettle(clients, forTimes(b.N)); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkCycle runs the full cycle with 64 clients.
func BenchmarkCycle(b *testing.B) {
	for _, subject := range Subjects() {
		b.Run(subject.Name, func(b *testing.B) {
			s := open(b, subject)
			c, err := s.OpenCycles()
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.ReportAllocs()
			b.ResetTimer()
			if _, err := c.Run(64, forTimes(b.N)); err != nil {
				b.Fatal(err)
			}
		})
	}
}
