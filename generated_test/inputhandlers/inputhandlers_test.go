package inputhandlers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

type step = func(out *FeedSender) error

// say sends the same word along each edge.
func say(w Word) step {
	return func(out *FeedSender) error { return errors.Join(out.SendWord(w), out.SendName(string(w))) }
}

func page(n int) step { return func(out *FeedSender) error { return out.SendPage(Page[int]{n}) } }

func fail(out *FeedSender) error { return errTold }

func wait(d time.Duration) step {
	return func(out *FeedSender) error { <-time.After(d); return nil }
}

// hear runs the topology in virtual time with the steps of feed, and returns the notes of
// each processor.
func hear(t *testing.T, does map[string]func() error, steps ...step) (map[string][]string, *Topology, error) {
	t.Helper()
	heard.list, heard.does = nil, maps.Clone(does)
	top, err := New(Processors{Feed: func(topo.Instance) (*Feed, error) { return &Feed{&steps}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Other().SendWordToRing(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	top.Other().Close()
	err = top.Run(t.Context())
	said := make(map[string][]string)
	for _, text := range heard.list {
		who, what, _ := strings.Cut(text, " ")
		said[who] = append(said[who], what)
	}
	return said, top, err
}

func same(t *testing.T, who string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s heard\n\t%s\nwant\n\t%s", who, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestEachForm checks the methods in each form: with and without context, sender and error.
func TestEachForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, top, err := hear(t, nil, say("a"), wait(150*time.Millisecond), say("b"), wait(time.Millisecond), fail, page(3), wait(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "sink", said["sink"], []string{"page [7]"})
		want := []Word{
			"closed other -> full: Word", "closed feed -> full: Word", "recovered feed -> full: Word", "restarted feed", "closed feed -> full: Word", "all closed",
		}
		if got := top.Sink(0).words; !slices.Equal(got, want) {
			t.Errorf("full sent %q", got)
		}
		same(t, "plain", said["plain"], []string{
			"closed other -> plain: Word",
			"feed a [other -> plain: Word]",
			"closed feed -> plain: Word",
			"feed b [other -> plain: Word]",
			"recovered feed -> plain: Word",
			"restarted feed",
			"page 3",
			"closed feed -> plain: Word",
			"closed feed -> plain: Page",
			"closed every 50ms -> plain",
			"closed every 1h0m0s -> plain",
			"all closed",
			"finish",
		})
	})
}

// TestARingClosesAsOne checks that the inputs inside a ring close without a call, because
// all members of the ring have ended.
func TestARingClosesAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, _, err := hear(t, nil, wait(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(said["ring"], "closed other -> ring: Word"); i >= 0 {
			said["ring"] = slices.Delete(said["ring"], i, i+1) // pages are still passed on at that time
		}
		same(t, "ring", said["ring"], []string{"page 2", "page 1", "page 0", "finish"})
	})
}

// TestErrorsThatAreSkipped checks that an error of one of these methods does not prevent
// later calls, and that messages still count as handled.
func TestErrorsThatAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := func(out *FeedSender) error { return errors.Join(out.SendWord("a"), out.SendPage(Page[int]{1})) }
		said, top, err := hear(t, nil, both, wait(150*time.Millisecond), both, wait(time.Millisecond), fail, wait(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "skips", said["skips"], []string{
			"word a", "page 1",
			"closed feed -> skips: Word", "closed feed -> skips: Page",
			"word a", "recovered feed -> skips: Word", "page 1", "recovered feed -> skips: Page",
			"restarted",
			"closed feed -> skips: Word", "closed feed -> skips: Page", "all closed",
		})
		if f := *top.Snapshot().Processors[ProcessorSkips].Faults; f != (pool.FaultFigures{InputTimeouts: 2, CircuitBreakerRecoveries: 2}) {
			t.Errorf("%+v", f)
		}
	})
}

// TestFailingWhileHearing ends an instance by an error or a panic in one of these methods.
// The next instance gets the calls for closed inputs again.
func TestFailingWhileHearing(t *testing.T) {
	for name, how := range map[string]func() error{"error": func() error { return errTold }, "panic": func() error { panic(errTold) }} {
		for _, at := range []string{
			"closed other -> breaks: Word", "closed feed -> breaks: Word", "recovered feed -> breaks: Word", "restarted feed", "all closed",
		} {
			t.Run(name+" "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					said, top, err := hear(t, map[string]func() error{"breaks " + at: how}, wait(time.Millisecond), say("a"), wait(150*time.Millisecond), say("b"), wait(time.Millisecond), fail, wait(time.Millisecond), say("c"))
					// If all inputs are closed, there may be no work for a restart.
					if err != nil && !(at == "all closed" && errors.Is(err, pool.ErrGaveUp)) {
						t.Fatal(err)
					}
					f := *top.Snapshot().Processors[ProcessorBreaks].Faults
					if f.Restarts != 1 && at != "all closed" || f.Dropped != 0 || f.InputTimeouts != 1 {
						t.Errorf("%+v", f)
					}
					list := said["breaks"]
					words := 0
					for _, s := range list {
						if strings.HasPrefix(s, "word ") {
							words++
						}
					}
					if words != 3 {
						t.Errorf("%d words", words)
					}
					i := slices.Index(list, at)
					if i < 0 || !slices.Contains(list[i+1:], "close") {
						t.Fatalf("%q", list)
					}
					if at == "all closed" {
						return
					}
					for _, closed := range []string{"closed other -> breaks: Word", "closed feed -> breaks: Word", "all closed"} {
						if !slices.Contains(list[i+1:], closed) {
							t.Errorf("the next instance did not get %q: %q", closed, list)
						}
					}
				})
			})
		}
	}
}

// TestAPanicInInputs checks that a panic in Inputs is an error of New, or of the restart,
// that names the processor and the instance.
func TestAPanicInInputs(t *testing.T) {
	expect := func(t *testing.T, err error, words ...string) {
		t.Helper()
		if !errors.Is(err, errTold) {
			t.Errorf("the error does not wrap the cause: %v", err)
		}
		for _, w := range append(words, "told to fail", "inputhandlers.go") {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("the error does not say %q: %v", w, err)
			}
		}
	}
	panics := func() error { panic(errTold) }
	for _, name := range []string{"skips", "breaks"} {
		heard.list, heard.does = nil, map[string]func() error{"inputs " + name: panics}
		top, err := New(Processors{})
		expect(t, err, `constructing processor "`+name+`", instance 0: panic`)
		if top != nil {
			t.Error("New returned a topology")
		}
	}
	t.Run("restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			always := panics
			again := func() error { heard.does["inputs breaks"] = always; return panics() }
			always = again
			arm := func(*FeedSender) error {
				heard.mu.Lock()
				defer heard.mu.Unlock()
				heard.does["inputs breaks"] = again
				return nil
			}
			_, _, err := hear(t, map[string]func() error{"breaks word a, its 1th": panics}, arm, say("a"), wait(time.Millisecond))
			if !errors.Is(err, pool.ErrGaveUp) {
				t.Errorf("got %v, want %v", err, pool.ErrGaveUp)
			}
			expect(t, err, `processor "breaks", instance 0`, `constructing processor "breaks", instance 0: panic`)
		})
	})
}

// TestTheTracker checks that the tracker has the state and the last message of each input,
// also after the input has closed.
func TestTheTracker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in *PlainInputs
		var states []string
		look := func() error {
			w, ok := in.FeedWord.Last()
			p, has := in.Page.Last()
			states = append(states, strings.Join([]string{
				string(w), in.FeedWord.State().String(), in.OtherWord.State().String(), in.Page.State().String(), in.Every50msTick.State().String(),
			}, " "))
			if ok != (w != "") || has != (p.Of != 0) || in.AnyClosed() != (len(in.Closed()) > 0) {
				t.Errorf("%q %v %v %v %v", w, ok, p, has, in.Closed())
			}
			return nil
		}
		steps := []step{wait(60 * time.Millisecond), say("a"), page(3), wait(150 * time.Millisecond), say("b"), wait(time.Millisecond)}
		heard.list = nil
		heard.does = map[string]func() error{
			"plain feed a []": look, "plain page 3": look, "plain closed feed -> plain: Word": look, "plain recovered feed -> plain: Word": look, "plain all closed": look,
			"plain closed other -> plain: Word": look, "plain feed b [other -> plain: Word]": look,
		}
		top, err := New(Processors{
			Feed:  func(topo.Instance) (*Feed, error) { return &Feed{&steps}, nil },
			Plain: func(topo.Instance) (*Plain, error) { return new(Plain), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		in = top.Plain(0).in
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, top.Other().Close)
		if err := top.Run(ctx); err != nil {
			t.Fatal(err)
		}
		same(t, "the tracker", states, []string{
			"a open waiting waiting open",
			"a open waiting open open",
			"a broken waiting open open",
			"a broken broken open open",
			"b open broken open open",
			"b open broken open open",
			"b closed closed closed closed",
		})
		if w, ok := in.FeedWord.Last(); w != "b" || !ok || in.Page.State() != supervise.Closed {
			t.Error(w, ok)
		}
	})
}
