package localtests_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topogen/topogen/generated_test/inputhandlers"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/supervise"
	"github.com/topogen/topogen/runtime/topo"
)

type inputHandlersStep = func(out *inputhandlers.FeedSender) error

// sayInputHandlers sends the same word along each edge.
func sayInputHandlers(w inputhandlers.Word) inputHandlersStep {
	return func(out *inputhandlers.FeedSender) error {
		return errors.Join(out.SendWord(w), out.SendName(string(w)))
	}
}

func pageInputHandlers(n int) inputHandlersStep {
	return func(out *inputhandlers.FeedSender) error { return out.SendPage(inputhandlers.Page[int]{Of: n}) }
}

func failInputHandlers(out *inputhandlers.FeedSender) error { return inputhandlers.ErrTold }

func waitInputHandlers(d time.Duration) inputHandlersStep {
	return func(out *inputhandlers.FeedSender) error { <-time.After(d); return nil }
}

// hearInputHandlers runs the topology in virtual time with the steps of feed, and returns the notes of
// each processor.
func hearInputHandlers(t *testing.T, does map[string]func() error, steps ...inputHandlersStep) (map[string][]string, *inputhandlers.Topology, error) {
	t.Helper()
	inputhandlers.Heard.List, inputhandlers.Heard.Does = nil, maps.Clone(does)
	top, err := inputhandlers.New(inputhandlers.Processors{Feed: func(topo.Instance) (*inputhandlers.Feed, error) { return &inputhandlers.Feed{Steps: &steps}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Other().SendWordToRing(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	top.Other().Close()
	err = top.Run(t.Context())
	said := make(map[string][]string)
	for _, text := range inputhandlers.Heard.List {
		who, what, _ := strings.Cut(text, " ")
		said[who] = append(said[who], what)
	}
	return said, top, err
}

func sameInputHandlers(t *testing.T, who string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s heard\n\t%s\nwant\n\t%s", who, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestInputHandlersEachForm checks the methods in each form: with and without context, sender and error.
func TestInputHandlersEachForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, top, err := hearInputHandlers(t, nil, sayInputHandlers("a"), waitInputHandlers(150*time.Millisecond), sayInputHandlers("b"), waitInputHandlers(time.Millisecond), failInputHandlers, pageInputHandlers(3), waitInputHandlers(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		sameInputHandlers(t, "sink", said["sink"], []string{"page [7]"})
		want := []inputhandlers.Word{
			"closed other -> full: Word", "closed feed -> full: Word", "recovered feed -> full: Word", "restarted feed", "closed feed -> full: Word", "all closed",
		}
		if got := top.Sink(0).Words; !slices.Equal(got, want) {
			t.Errorf("full sent %q", got)
		}
		sameInputHandlers(t, "plain", said["plain"], []string{
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

// TestInputHandlersARingClosesAsOne checks that the inputs inside a ring close without a call, because
// all members of the ring have ended.
func TestInputHandlersARingClosesAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, _, err := hearInputHandlers(t, nil, waitInputHandlers(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(said["ring"], "closed other -> ring: Word"); i >= 0 {
			said["ring"] = slices.Delete(said["ring"], i, i+1) // pages are still passed on at that time
		}
		sameInputHandlers(t, "ring", said["ring"], []string{"page 2", "page 1", "page 0", "finish"})
	})
}

// TestInputHandlersErrorsThatAreSkipped checks that an error of one of these methods does not prevent
// later calls, and that messages still count as handled.
func TestInputHandlersErrorsThatAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := func(out *inputhandlers.FeedSender) error {
			return errors.Join(out.SendWord("a"), out.SendPage(inputhandlers.Page[int]{Of: 1}))
		}
		said, top, err := hearInputHandlers(t, nil, both, waitInputHandlers(150*time.Millisecond), both, waitInputHandlers(time.Millisecond), failInputHandlers, waitInputHandlers(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		sameInputHandlers(t, "skips", said["skips"], []string{
			"word a", "page 1",
			"closed feed -> skips: Word", "closed feed -> skips: Page",
			"word a", "recovered feed -> skips: Word", "page 1", "recovered feed -> skips: Page",
			"restarted",
			"closed feed -> skips: Word", "closed feed -> skips: Page", "all closed",
		})
		if f := *top.Snapshot().Processors[inputhandlers.ProcessorSkips].Faults; f != (pool.FaultFigures{InputTimeouts: 2, CircuitBreakerRecoveries: 2}) {
			t.Errorf("%+v", f)
		}
	})
}

// TestInputHandlersFailingWhileHearing ends an instance by an error or a panic in one of these methods.
// The next instance gets the calls for closed inputs again.
func TestInputHandlersFailingWhileHearing(t *testing.T) {
	for name, how := range map[string]func() error{"error": func() error { return inputhandlers.ErrTold }, "panic": func() error { panic(inputhandlers.ErrTold) }} {
		for _, at := range []string{
			"closed other -> breaks: Word", "closed feed -> breaks: Word", "recovered feed -> breaks: Word", "restarted feed", "all closed",
		} {
			t.Run(name+" "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					said, top, err := hearInputHandlers(t, map[string]func() error{"breaks " + at: how}, waitInputHandlers(time.Millisecond), sayInputHandlers("a"), waitInputHandlers(150*time.Millisecond), sayInputHandlers("b"), waitInputHandlers(time.Millisecond), failInputHandlers, waitInputHandlers(time.Millisecond), sayInputHandlers("c"))
					// If all inputs are closed, there may be no work for a restart.
					if err != nil && !(at == "all closed" && errors.Is(err, pool.ErrGaveUp)) {
						t.Fatal(err)
					}
					f := *top.Snapshot().Processors[inputhandlers.ProcessorBreaks].Faults
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

// TestInputHandlersAPanicInInputs checks that a panic in Inputs is an error of New, or of the restart,
// that names the processor and the instance.
func TestInputHandlersAPanicInInputs(t *testing.T) {
	expect := func(t *testing.T, err error, words ...string) {
		t.Helper()
		if !errors.Is(err, inputhandlers.ErrTold) {
			t.Errorf("the error does not wrap the cause: %v", err)
		}
		for _, w := range append(words, "told to fail", "inputhandlers.go") {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("the error does not say %q: %v", w, err)
			}
		}
	}
	panics := func() error { panic(inputhandlers.ErrTold) }
	for _, name := range []string{"skips", "breaks"} {
		inputhandlers.Heard.List, inputhandlers.Heard.Does = nil, map[string]func() error{"inputs " + name: panics}
		top, err := inputhandlers.New(inputhandlers.Processors{})
		expect(t, err, `constructing processor "`+name+`", instance 0: panic`)
		if top != nil {
			t.Error("New returned a topology")
		}
	}
	t.Run("restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var again func() error
			again = func() error {
				inputhandlers.Heard.Do("inputs breaks", again)
				return panics()
			}
			arm := func(*inputhandlers.FeedSender) error {
				inputhandlers.Heard.Do("inputs breaks", again)
				return nil
			}
			_, _, err := hearInputHandlers(t, map[string]func() error{"breaks word a, its 1th": panics}, arm, sayInputHandlers("a"), waitInputHandlers(time.Millisecond))
			if !errors.Is(err, pool.ErrGaveUp) {
				t.Errorf("got %v, want %v", err, pool.ErrGaveUp)
			}
			expect(t, err, `processor "breaks", instance 0`, `constructing processor "breaks", instance 0: panic`)
		})
	})
}

// TestInputHandlersTheTracker checks that the tracker has the state and the last message of each input,
// also after the input has closed.
func TestInputHandlersTheTracker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in *inputhandlers.PlainInputs
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
		steps := []inputHandlersStep{waitInputHandlers(60 * time.Millisecond), sayInputHandlers("a"), pageInputHandlers(3), waitInputHandlers(150 * time.Millisecond), sayInputHandlers("b"), waitInputHandlers(time.Millisecond)}
		inputhandlers.Heard.List = nil
		inputhandlers.Heard.Does = map[string]func() error{
			"plain feed a []": look, "plain page 3": look, "plain closed feed -> plain: Word": look, "plain recovered feed -> plain: Word": look, "plain all closed": look,
			"plain closed other -> plain: Word": look, "plain feed b [other -> plain: Word]": look,
		}
		top, err := inputhandlers.New(inputhandlers.Processors{
			Feed:  func(topo.Instance) (*inputhandlers.Feed, error) { return &inputhandlers.Feed{Steps: &steps}, nil },
			Plain: func(topo.Instance) (*inputhandlers.Plain, error) { return new(inputhandlers.Plain), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		in = top.Plain(0).Tracker
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, top.Other().Close)
		if err := top.Run(ctx); err != nil {
			t.Fatal(err)
		}
		sameInputHandlers(t, "the tracker", states, []string{
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
