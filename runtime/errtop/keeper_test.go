package errtop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

// recorder is the interface by which a pool uses a Keeper.
type recorder interface {
	Record(worker int, where string, instance int, err error, stack []byte)
}

var _ recorder = (*Keeper)(nil)

func TestZeroKeeperIsReady(t *testing.T) {
	var k Keeper
	if top := k.Top(); len(top) != 0 {
		t.Errorf("holds %v", top)
	}
	k.Record(0, "parser", 0, errors.New("no such line"), nil)
	k.Record(-1, "parser", 7, errors.New("no such line"), nil)
	k.Record(1<<20, "", 0, errors.New("no such line"), nil)
	k.Record(0, "parser", 0, nil, nil)
	if got, want := figures(k.Top()), "parser: no such line ×2, no such line ×1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := errors.Join(k.Dump(), k.Close(), k.Close()); err != nil {
		t.Error(err)
	}
}

func TestStacksAreOfWhereTheErrorWasMade(t *testing.T) {
	var k Keeper
	for range 2 {
		k.Record(0, "depot", 0, makeError(), nil)
		k.Record(0, "depot", 0, fmt.Errorf("start: %w", makeError()), nil)
		k.Record(0, "depot", 0, makeError(), nil) // on another line
	}
	top := k.Top()
	if len(top) != 2 && len(top) != 3 {
		t.Fatalf("holds %d", len(top))
	}
	for _, e := range top {
		lines := strings.Split(e.Text, "\n")
		if !strings.HasSuffix(lines[1], ".makeError") || !strings.Contains(e.Text, "TestStacksAre") || e.Count != 2 {
			t.Errorf("%d of %s", e.Count, e.Text)
		}
	}
}

type hostile struct{ ended bool }

func (h *hostile) Error() string {
	if h.ended {
		return strings.Repeat("\xff", 1<<20)
	}
	panic("no reason")
}

func TestHostileErrors(t *testing.T) {
	var k Keeper
	k.Record(0, "", 0, &hostile{}, nil)
	k.Record(0, "", 0, (*hostile)(nil), nil)
	k.Record(0, "", 0, &hostile{ended: true}, []byte("\xff\n\t\xfe"))
	for _, e := range k.Top() {
		if len(e.Text) > textMax || !strings.Contains(e.Text, "whose method Error panics") && !strings.Contains(e.Text, "\uFFFD") {
			t.Errorf("%d bytes: %.100q", len(e.Text), e.Text)
		}
	}
}

func TestCatch(t *testing.T) {
	var k Keeper
	calls := map[string]func() error{
		"nothing":   func() error { return nil },
		"error":     func() error { return fs.ErrExist },
		"panic":     func() error { panic("out of paper") },
		"panic err": func() error { panic(fmt.Errorf("print: %w", fs.ErrExist)) },
		"panic nil": func() error { panic(nil) },
	}
	got := make(map[string]error)
	for name, call := range calls {
		got[name] = k.Catch(0, name, call)
	}
	if got["nothing"] != nil || got["error"] != fs.ErrExist || !errors.Is(got["panic err"], fs.ErrExist) {
		t.Errorf("%v", got)
	}
	if _, ok := errors.AsType[*runtime.PanicNilError](got["panic nil"]); !ok || got["panic"].Error() != "panic: out of paper" {
		t.Errorf("%v", got)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = k.Catch(0, "goexit", func() error { runtime.Goexit(); return nil })
	}()
	<-ended
	var first []string
	for _, e := range k.Top() {
		line, stack, _ := strings.Cut(e.Text, "\n")
		first = append(first, line)
		if strings.HasPrefix(line, "error: ") == strings.Contains(stack, "TestCatch.") {
			t.Errorf("the stack does not begin at the panic:\n%s", e.Text)
		}
	}
	slices.Sort(first)
	want := []string{
		"error: file already exists", "goexit: the call ended its goroutine (runtime.Goexit, perhaps by t.FailNow)",
		"panic err: panic: print: file already exists",
		"panic nil: panic: panic called with nil argument", "panic: panic: out of paper",
	}
	if !slices.Equal(first, want) {
		t.Errorf("holds\n%s\nwant\n%s", strings.Join(first, "\n"), strings.Join(want, "\n"))
	}
}

// TestKeeperMatchesModel: for any records, reads and restarts, a keeper has the same
// content as a simple model.
func TestKeeperMatchesModel(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	synctest.Test(t, func(t *testing.T) {
		// The deadline of the test is in real time.
		rapid.Check(struct{ *testing.T }{t}, func(t *rapid.T) {
			settings := Settings{Path: "/errors.pb", Keep: 100 * time.Millisecond, DumpEvery: 3 * time.Millisecond}
			disk := newMemoryDisk(nil)
			k := mustOpen(t, settings, disk)
			defer func() { closeKeeper(t, k) }()
			model := make(map[string]Entry)
			remove := func() {
				for text, e := range model {
					if time.Since(e.Last) >= settings.Keep {
						delete(model, text)
					}
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"record": func(t *rapid.T) {
					text := fmt.Sprint("error ", rapid.IntRange(0, 60).Draw(t, "error"))
					k.Record(rapid.IntRange(-1, 3).Draw(t, "worker"), "", rapid.IntRange(0, 2).Draw(t, "instance"), errors.New(text), nil)
					model[text] = Entry{text, model[text].Count + 1, time.Now()}
				},
				"wait": func(t *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 40).Draw(t, "ms")) * time.Millisecond) // virtual time
					remove()
				},
				"restart": func(t *rapid.T) {
					closeKeeper(t, k)
					k = mustOpen(t, settings, disk)
					remove()
				},
				"kill": func(t *rapid.T) {
					if err := k.Dump(); err != nil {
						t.Fatal(err)
					}
					defer closeKeeper(t, k) // it has nothing to write
					k = mustOpen(t, settings, disk)
					remove()
				},
				"": func(t *rapid.T) {
					remove()
					want := []Entry{}
					for _, e := range model {
						want = append(want, e)
					}
					sortEntries(want)
					if got := k.Top(); !slices.EqualFunc(got, want, equal) {
						t.Fatalf("got  %v\nwant %v", got, want)
					}
				},
			})
		})
	})
}

func TestWorkersRecordWhileOthersRead(t *testing.T) {
	const workers, each, texts = 16, 1000, 200
	k, err := Open(Settings{Path: filepath.Join(t.TempDir(), "errors.pb"), DumpEvery: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var recording, reading sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		reading.Go(func() {
			before := make(map[string]uint64)
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				default:
				}
				for _, e := range k.Top() {
					if e.Count < before[e.Text] {
						t.Errorf("the count of %q fell from %d to %d", e.Text, before[e.Text], e.Count)
					}
					before[e.Text] = e.Count
				}
				if err := k.Dump(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for worker := range workers {
		recording.Go(func() {
			for i := range each {
				text := fmt.Sprint("error ", i%texts)
				k.Record(worker, "", 0, errors.New(text), nil)
				if i%500 == 0 && !slices.ContainsFunc(k.Top(), func(e Entry) bool { return e.Text == text }) {
					t.Errorf("%q was recorded but is not in Top", text)
				}
			}
		})
	}
	recording.Wait()
	close(done)
	reading.Wait()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	fromFile, err := Read(k.settings.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range [][]Entry{k.Top(), fromFile} {
		for _, e := range top {
			if e.Count != workers*each/texts {
				t.Errorf("%q was recorded %d times and counted %d times", e.Text, workers*each/texts, e.Count)
			}
		}
		if len(top) != texts {
			t.Errorf("%d records, want %d", len(top), texts)
		}
	}
}

// TestMemoryIsBounded: a shard and the top stay within their limits, whatever is
// recorded.
func TestMemoryIsBounded(t *testing.T) {
	k, err := Open(Settings{Top: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 * causesMax {
		k.Record(0, "", 0, fmt.Errorf("%d%s", i, strings.Repeat("x", 1<<16)), nil)
		if n := len(k.shards[0].tallies); n > causesMax || n != len(k.shards[0].index) {
			t.Fatalf("a shard has %d causes", n)
		}
	}
	top := k.Top()
	if len(top) != 10 || !slices.ContainsFunc(top, func(e Entry) bool { return strings.HasPrefix(e.Text, fmt.Sprint(10*causesMax-1, "x")) }) {
		t.Errorf("got %d records, and not the newest", len(top))
	}
	for _, e := range top {
		if len(e.Text) > textMax {
			t.Errorf("a text of %d bytes", len(e.Text))
		}
	}
}

func TestNewErrorRisesInAFullTop(t *testing.T) {
	k, err := Open(Settings{Top: 16})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 * 100 {
		k.Record(i, "", 0, fmt.Errorf("old %d", i%16), nil)
	}
	if n := len(k.Top()); n != 16 {
		t.Fatalf("%d records", n)
	}
	for i := range 200 {
		k.Record(0, "", 0, errors.New("new"), nil)
		k.Record(0, "", 0, fmt.Errorf("once %d", i), nil)
		k.Top() // merges, so that new records arrive one at a time
	}
	if first := k.Top()[0]; first.Text != "new" || first.Count != 200 {
		t.Errorf("the first record is %v", first)
	}
}

// TestMergeCountsBeforeRemoval: whatever workers record between two merges, each
// record that stays has its complete count, and old records are removed before new ones.
func TestMergeCountsBeforeRemoval(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	synctest.Test(t, func(t *testing.T) {
		// The deadline of the test is in real time.
		rapid.Check(struct{ *testing.T }{t}, func(t *rapid.T) {
			top := rapid.IntRange(1, 40).Draw(t, "top")
			k := mustOpen(t, Settings{Top: top, Keep: time.Second}, nil)
			for i := range rapid.IntRange(0, min(top, causesMax)).Draw(t, "old") {
				k.Record(0, "", 0, fmt.Errorf("old %d", i), nil)
			}
			k.Top()
			time.Sleep(time.Second) // virtual time
			counts := make(map[string]uint64)
			texts := rapid.IntRange(1, causesMax).Draw(t, "texts") // no worker records so many that it must merge
			for range rapid.IntRange(1, 200).Draw(t, "errors") {
				text := fmt.Sprint("new ", rapid.IntRange(1, texts).Draw(t, "text"))
				counts[text]++
				k.Record(rapid.IntRange(0, 3).Draw(t, "worker"), "", 0, errors.New(text), nil)
			}
			entries := k.Top()
			if len(entries) != min(top, len(counts)) {
				t.Fatalf("got %d of %d records, at most %d are kept", len(entries), len(counts), top)
			}
			for _, e := range entries {
				if e.Count != counts[e.Text] {
					t.Errorf("%s has count %d, want %d", e.Text, e.Count, counts[e.Text])
				}
			}
		})
	})
}

// TestEndlessErrors: endless errors, or errors whose methods panic, are recorded.
func TestEndlessErrors(t *testing.T) {
	var k Keeper
	for range 2 {
		k.Record(0, "a", 0, endless{}, nil)
		if err := k.Catch(0, "b", func() error { panic(endless{}) }); err == nil || errors.Is(err, fs.ErrExist) {
			t.Errorf("%v", err)
		}
		if _, wrapped := Wrap(endless{}).(*traced); !wrapped || StackOf(endless{}) != nil {
			t.Error("Wrap and StackOf disagree about whether it has a stack")
		}
	}
	for _, e := range k.Top() {
		if e.Count != 2 || !strings.Contains(e.Text, "an error of type errtop.endless that wraps too many errors, or itself") {
			t.Errorf("%d of %s", e.Count, e.Text)
		}
	}
}

// endless is an error that wraps itself.
type endless struct{}

func (e endless) Error() string { return fmt.Sprint("in ", e.Unwrap()) }
func (e endless) Unwrap() error { return e }
func (endless) As(any) bool     { return false }

func TestSettings(t *testing.T) {
	for want, s := range map[string]Settings{
		"top must be between 1 and 4096, got -1":   {Top: -1},
		"top must be between 1 and 4096, got 4097": {Top: 4097},
		"keep must not be negative, got -1s":       {Keep: -time.Second},
		"dump_every must be at least 1ms, got 1µs": {DumpEvery: time.Microsecond},
		"dump_every must be at least 1ms, got -1s": {DumpEvery: -time.Second},
	} {
		if _, err := Open(s); !errors.Is(err, ErrSettings) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestDefaults: by default 1000 records are kept, for ten minutes.
func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := mustOpen(t, Settings{}, nil)
		for i := range 1100 {
			k.Record(0, "", 0, fmt.Errorf("error %d", i), nil)
		}
		for _, c := range []struct {
			wait time.Duration
			left int
		}{{10*time.Minute - time.Microsecond, 1000}, {time.Microsecond, 0}} {
			time.Sleep(c.wait) // virtual time
			if n := len(k.Top()); n != c.left {
				t.Errorf("got %d records, want %d", n, c.left)
			}
		}
	})
}

// TestCrash: with the setting Crash, the first error or panic ends the process.
func TestCrash(t *testing.T) {
	if how := os.Getenv("ERRTOP_TEST_CRASH"); how != "" {
		k, err := Open(Settings{Path: os.Getenv("ERRTOP_TEST_FILE"), Crash: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = k.Catch(0, "depot", func() error {
			if how == "panic" {
				panic("the tank leaks")
			}
			return makeError()
		})
		t.Fatal("the process was not ended")
	}
	for how, want := range map[string][]string{
		"error": {"depot: the tank is empty\n", "errtop.makeError\n\t", "traced_test.go:"},
		"panic": {"panic: the tank leaks", "goroutine ", "keeper_test.go:"},
	} {
		path := filepath.Join(t.TempDir(), "errors.pb")
		child := exec.Command(os.Args[0], "-test.run=^TestCrash$")
		child.Env = append(os.Environ(), "ERRTOP_TEST_CRASH="+how, "ERRTOP_TEST_FILE="+path)
		out, err := child.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitCrash {
			t.Errorf("%s: %v", how, err)
		}
		for _, part := range want {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s: %q is missing in\n%s", how, part, out)
			}
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file was written: %v", how, err)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	var k Keeper
	err := makeError()
	b.ReportAllocs()
	for b.Loop() {
		k.Record(0, "parser", 0, err, nil)
	}
}

// fataler is the common interface of tests and rapid's tests.
type fataler interface {
	Helper()
	Fatal(...any)
}

func mustOpen(t fataler, s Settings, d disk) *Keeper {
	t.Helper()
	k, err := open(s, d)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func closeKeeper(t fataler, k *Keeper) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

func equal(a, b Entry) bool { return a.Text == b.Text && a.Count == b.Count && a.Last.Equal(b.Last) }

// figures returns "first line ×count, …".
func figures(top []Entry) string {
	var list []string
	for _, e := range top {
		line, _, _ := strings.Cut(e.Text, "\n")
		list = append(list, fmt.Sprintf("%s ×%d", line, e.Count))
	}
	return strings.Join(list, ", ")
}

// warnings is a logger that keeps its records.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) logger() *slog.Logger { return slog.New(w) }

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) WithGroup(string) slog.Handler            { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	w.list = append(w.list, text)
	return nil
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}
