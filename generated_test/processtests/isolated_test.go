//go:build unix

package processtests_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/isolated"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/topo"
)

func run(t *testing.T, jobs []isolated.Job, act func(ctx context.Context, top *isolated.Topology, stop func())) (*isolated.Topology, error) {
	t.Helper()
	top, err := isolated.New(isolated.Processors{Feed: func(topo.Instance) (*isolated.Feed, error) { return &isolated.Feed{Jobs: jobs}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		act(ctx, top, cancel)
		top.Api().Close()
	}()
	err = top.Run(ctx)
	<-done
	return top, err
}

func TestIsolatedJobs(t *testing.T) {
	hangs := speed.Pick[uint64](t, 0, 1, 1) // a hang takes a second
	var jobs []isolated.Job
	for i := range 200 {
		j := isolated.Job{ID: i, Tags: []string{"a", "b"}, At: time.Now()}
		switch i {
		case 50:
			j.Do = "error"
		case 100:
			j.Do = "exit"
		case 120:
			j.Do = "panic"
		case 150:
			if hangs > 0 {
				j.Do = "hang"
			}
		}
		jobs = append(jobs, j)
	}
	top, err := run(t, jobs, func(ctx context.Context, top *isolated.Topology, stop func()) {
		await(t, "all are handled", func() bool { return top.Snapshot().Edges[isolated.EdgeFeedWorkerJob].Received == 200 })
		for i := range 10 {
			a, err := top.Api().AskQuery(ctx, isolated.Query{ID: i})
			if err != nil || a.Process == os.Getpid() || a.Process == 0 {
				t.Errorf("%+v %v", a, err)
			}
		}
		if _, err := top.Api().AskQuery(ctx, isolated.Query{ID: -1}); !errors.Is(err, topo.ErrFailed) {
			t.Error(err)
		}
		await(t, "it ticks", func() bool {
			a, err := top.Api().AskQuery(ctx, isolated.Query{ID: 1})
			return err != nil || a.Ticks > 3
		})
		stop()
	})
	if err != nil {
		t.Error(err)
	}
	seen := make(map[int]int)
	for _, r := range top.Collector(0).Results {
		seen[r.ID]++
		if r.ID < 1000 && (r.Value != 3*r.ID || len(r.Tags) != 2 || r.Process == os.Getpid()) {
			t.Errorf("%+v", r)
		}
	}
	for _, j := range jobs {
		want := 1
		if j.Do != "" {
			want = 0
		}
		if seen[j.ID] != want {
			t.Errorf("job %d has %d results", j.ID, seen[j.ID])
		}
	}
	// An error, an exit, a panic and a hang of a job, and the error of the query end a process each, at
	// each of two attempts.
	if f := *top.Snapshot().Processors[isolated.ProcessorWorker].Faults; f.Restarts != 8+2*hangs || f.HealthCheckKills != 2*hangs || f.DeadLetters != 4+hangs {
		t.Errorf("%+v", f)
	}
	for _, d := range top.Morgue(0).Letters {
		if j, ok := isolated.DeadLetterFeedWorkerJob(d); ok && (j.Do == "" || d.Attempts != 2 || len(j.Tags) != 2) {
			t.Errorf("%+v: %+v", j, d)
		}
	}
}

func TestIsolatedKilledFromOutside(t *testing.T) {
	_, err := run(t, nil, func(ctx context.Context, top *isolated.Topology, stop func()) {
		a, err := top.Api().AskQuery(ctx, isolated.Query{ID: 1})
		if err != nil {
			t.Error(err)
			return
		}
		for range 5 {
			if err := syscall.Kill(a.Process, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			b, err := top.Api().AskQuery(ctx, isolated.Query{ID: 1})
			if err != nil || b.Process == a.Process {
				t.Errorf("%+v %v", b, err)
			}
			a = b
		}
		stop()
	})
	if err != nil {
		t.Error(err)
	}
}
