package shard

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

func newPages(t testing.TB, workers int, first [][]int) *Pages {
	t.Helper()
	p, err := NewPages(workers, first)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// to returns a decision that returns config.
func to(config [][]int) func([][]int) ([][]int, error) {
	return func([][]int) ([][]int, error) { return config, nil }
}

// TestPagesOverTwoEpochs goes through two epochs of two workers.
func TestPagesOverTwoEpochs(t *testing.T) {
	p := newPages(t, 2, [][]int{{0, 1}, {2}})
	is := func(epoch uint64, want [][]int) {
		t.Helper()
		if p.Epoch() != epoch || !slices.EqualFunc(p.Config(epoch), want, slices.Equal) {
			t.Fatalf("epoch %d has configuration %v, want epoch %d with %v", p.Epoch(), p.Config(epoch), epoch, want)
		}
	}
	is(1, [][]int{{0, 1}, {2}})

	// No worker has promised, so there is no decision.
	switched, err := p.Reshard(func([][]int) ([][]int, error) { t.Fatal("decided too early"); return nil, nil })
	if switched || err != nil {
		t.Fatal(switched, err)
	}
	// A worker may promise repeatedly and is counted once.
	for range 3 {
		if p.Promise(0, 1) {
			t.Fatal("Promise of one of two workers returned true")
		}
	}
	if p.MayUpdate(0, 1) || !p.MayUpdate(1, 1) {
		t.Error("only worker 0 has promised")
	}
	if !p.Promise(1, 1) {
		t.Fatal("Promise of the second worker returned false")
	}
	if !p.Promise(0, 1) {
		t.Error("a repeated promise returned false after all have promised")
	}
	if switched, err := p.Reshard(to([][]int{{}, {2, 0, 1}})); !switched || err != nil {
		t.Fatal(switched, err)
	}
	// The new configuration is current. The old one is still available to workers that
	// have not switched yet.
	is(2, [][]int{{}, {2, 0, 1}})
	if old := p.Config(1); !slices.Equal(old[0], []int{0, 1}) || p.Config(0) != nil || p.Config(3) != nil {
		t.Error("only two configurations should be available, got", p.Config(0), old, p.Config(3))
	}
	// Promises end with their epoch, and a promise for an old epoch does not count.
	if !p.MayUpdate(0, 2) || p.Promise(0, 1) || p.Promise(1, 2) || !p.Promise(0, 2) {
		t.Error("promises of the old epoch still count")
	}
	if p.Workers() != 2 || p.Shards() != 3 {
		t.Error("there are", p.Workers(), "workers and", p.Shards(), "shards")
	}
}

// TestADecisionThatFailsChangesNothing: after an error, a panic, or an invalid
// configuration.
func TestADecisionThatFailsChangesNothing(t *testing.T) {
	p := newPages(t, 2, [][]int{{0}, {1}})
	p.Promise(0, 1)
	p.Promise(1, 1)
	boom := errors.New("boom")
	for name, decide := range map[string]func([][]int) ([][]int, error){
		"error": func(old [][]int) ([][]int, error) { old[0][0] = 1; return nil, boom },
		"empty": to(nil),
		"panic": func([][]int) ([][]int, error) { panic(boom) },
	} {
		func() {
			defer func() {
				if c := recover(); c != nil && name != "panic" {
					panic(c)
				}
			}()
			if switched, err := p.Reshard(decide); switched || err == nil {
				t.Error(name, switched, err)
			}
		}()
		if p.Epoch() != 1 || p.Config(1)[0][0] != 0 {
			t.Errorf("after %s: epoch %d has configuration %v", name, p.Epoch(), p.Config(p.Epoch()))
		}
		if p.MayUpdate(0, 1) || !p.Promise(0, 1) {
			t.Errorf("after %s: the promises are lost", name)
		}
	}
	if switched, err := p.Reshard(to([][]int{{1, 0}})); !switched || err != nil {
		t.Error(switched, err)
	}
}

// TestOneDecidesAtATime: a second decision is rejected while one is in progress.
func TestOneDecidesAtATime(t *testing.T) {
	p := newPages(t, 1, [][]int{{0}})
	p.Promise(0, 1)
	switched, err := p.Reshard(func(old [][]int) ([][]int, error) {
		if p.Promise(0, 1) {
			t.Error("Promise returned true while a decision is in progress")
		}
		if switched, err := p.Reshard(to(old)); switched || err != nil {
			t.Error("Reshard within a decision returned", switched, err)
		}
		return old, nil
	})
	if !switched || err != nil || p.Epoch() != 2 {
		t.Error(switched, err, p.Epoch())
	}
}

// TestConfigurationsAreCopied: changes to the argument or the result of a decision do not
// reach the workers.
func TestConfigurationsAreCopied(t *testing.T) {
	first := [][]int{{0, 1}, {2}}
	p := newPages(t, 2, first)
	first[0][0] = 2
	p.Promise(0, 1)
	p.Promise(1, 1)
	var kept [][]int
	p.Reshard(func(old [][]int) ([][]int, error) {
		old[0] = append(old[0], 7) // does not overwrite the next entry
		old[0][1], old[1][0], old[0] = 2, 1, old[0][:2]
		kept = old
		return old, nil
	})
	kept[0][0] = 9
	if !slices.Equal(p.Config(1)[0], []int{0, 1}) || !slices.Equal(p.Config(1)[1], []int{2}) {
		t.Error("the old configuration is", p.Config(1))
	}
	if !slices.Equal(p.Config(2)[0], []int{0, 2}) || !slices.Equal(p.Config(2)[1], []int{1}) {
		t.Error("the new configuration is", p.Config(2))
	}
}

func TestInvalidConfigurations(t *testing.T) {
	for _, c := range []struct {
		config [][]int
		want   string // "" if the configuration is valid
	}{
		{[][]int{{0, 1, 2}, {3}}, ""},
		{[][]int{{}, {3, 2, 1, 0}}, ""},
		{[][]int{{3, 2, 1, 0}}, ""}, // the second worker has no shards
		{[][]int{{0, 1}, {2}}, "shard 3 is given to no worker"},
		{nil, "shard 0 is given to no worker"},
		{[][]int{{0, 1, 2}, {3, 1}}, "shard 1 is given to worker 0 and to worker 1"},
		{[][]int{{0, 1, 2, 2}, {3}}, "shard 2 is given to worker 0 and to worker 0"},
		{[][]int{{0, 1, 2, 3, 4}}, "worker 0 gets shard 4, but there are 4 shards, numbered from 0"},
		{[][]int{{0, 1, 2, 3}, {-1}}, "worker 1 gets shard -1, but there are 4 shards, numbered from 0"},
		{[][]int{{0, 1}, {2, 3}, {}}, "it has entries for 3 workers, but there are 2 workers"},
	} {
		err := check(c.config, 2, 4)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrConfiguration) || !strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%v: got %v, want %q", c.config, err, c.want)
		}
	}
	for _, workers := range []int{-1, 0, workersMax + 1} {
		if _, err := NewPages(workers, nil); err == nil {
			t.Error("NewPages accepts", workers, "workers")
		}
	}
	if p, err := NewPages(3, [][]int{{1}, {0}}); err != nil || len(p.Config(1)) != 3 { // fewer shards than workers
		t.Error(err)
	}
	if _, err := NewPages(2, [][]int{{0}, {2}}); !errors.Is(err, ErrConfiguration) {
		t.Error("want an error, because shard 1 is missing; got", err)
	}
}

// TestRoundRobin: shard i belongs to worker i mod workers.
func TestRoundRobin(t *testing.T) {
	for _, c := range []struct {
		shards, workers int
		want            [][]int
	}{
		{5, 2, [][]int{{0, 2, 4}, {1, 3}}},
		{2, 3, [][]int{{0}, {1}, {}}},
		{0, 1, [][]int{{}}},
	} {
		if got := RoundRobin(c.shards, c.workers); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%d shards, %d workers: got %v, want %v", c.shards, c.workers, got, c.want)
		}
	}
}

// TestPagesModel compares Pages with a map of the workers that have promised, for random
// calls of random workers.
func TestPagesModel(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 9).Draw(t, "workers")
		shards := rapid.IntRange(0, 20).Draw(t, "shards")
		draw := func() [][]int {
			config := make([][]int, workers)
			for s := range shards {
				w := rapid.IntRange(0, workers-1).Draw(t, "worker of a shard")
				config[w] = append(config[w], s)
			}
			return config
		}
		config := draw()
		p, err := NewPages(workers, config)
		if err != nil {
			t.Fatal(err)
		}
		epoch, promised := uint64(1), make(map[int]bool)
		t.Repeat(map[string]func(*rapid.T){
			"promise": func(t *rapid.T) {
				w := rapid.IntRange(0, workers-1).Draw(t, "worker")
				promised[w] = true
				if got := p.Promise(w, epoch); got != (len(promised) == workers) {
					t.Fatalf("%d of %d have promised, and Promise returned %v", len(promised), workers, got)
				}
			},
			"promise late": func(t *rapid.T) {
				if p.Promise(rapid.IntRange(0, workers-1).Draw(t, "worker"), epoch-1) {
					t.Fatal("a promise for the previous epoch counts")
				}
			},
			"reshard": func(t *rapid.T) {
				next := draw()
				switched, err := p.Reshard(to(next))
				if err != nil || switched != (len(promised) == workers) {
					t.Fatalf("%d of %d have promised: %v, %v", len(promised), workers, switched, err)
				}
				if switched {
					config = next
					epoch++
					clear(promised)
				}
			},
			"": func(t *rapid.T) {
				if p.Epoch() != epoch || !slices.EqualFunc(p.Config(epoch), config, slices.Equal) {
					t.Fatalf("epoch %d has configuration %v, want epoch %d with %v", p.Epoch(), p.Config(p.Epoch()), epoch, config)
				}
				for w := range workers {
					if p.MayUpdate(w, epoch) == promised[w] {
						t.Fatalf("worker %d: MayUpdate returned %v", w, !promised[w])
					}
				}
			},
		})
	})
}
