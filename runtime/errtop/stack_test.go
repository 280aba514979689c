package errtop

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

type tank struct{ litres int }

//go:noinline
func (t *tank) fill(how string) {
	switch how {
	case "value":
		panic("the tank leaks")
	case "error":
		panic(New("the tank leaks"))
	case "nil pointer":
		t = nil
		t.litres++
	case "index":
		_ = []int{}[t.litres]
	case "again":
		defer func() { panic(fmt.Sprint("again: ", recover())) }()
		panic("the tank leaks")
	case "deep":
		t.fillDeep(100)
	}
}

//go:noinline
func (t *tank) fillDeep(n int) {
	if n > 0 {
		t.fillDeep(n - 1)
		return
	}
	panic("the tank leaks")
}

// asPool recovers as the pool does, with debug.Stack.
func asPool(call func()) (stack []byte, err error) {
	defer func() {
		stack, err = debug.Stack(), fmt.Errorf("panic: %v", recover())
	}()
	call()
	return nil, nil
}

//go:noinline
func handleBy(how string) { (&tank{litres: 7}).fill(how) }

func TestPanicsHaveTheSameTextEitherWay(t *testing.T) {
	below := regexp.MustCompile(`(?s)(errtop\.handleBy\n[^\n]*).*`) // from there on the two ways differ
	for _, how := range []string{"value", "error", "nil pointer", "index", "again", "deep"} {
		t.Run(how, func(t *testing.T) {
			var pool, catch Keeper
			stack, err := asPool(func() { handleBy(how) })
			pool.Record(0, "", 0, err, stack)
			if err := catch.Catch(0, "", func() error { handleBy(how); return nil }); err == nil || StackOf(err) == nil {
				t.Errorf("Catch returned %v, without a stack", err)
			}
			a, b := below.ReplaceAllString(onlyText(t, &pool), "$1"), below.ReplaceAllString(onlyText(t, &catch), "$1")
			if a != b {
				t.Errorf("from debug.Stack\n%s\nfrom program counters\n%s", a, b)
			}
			if lines := strings.Split(b, "\n"); !strings.Contains(lines[1], "errtop.(*tank).fill") {
				t.Errorf("the stack does not begin where the panic was raised:\n%s", b)
			}
		})
	}
}

var varying = regexp.MustCompile(`0x[0-9a-f]+|goroutine \d+|\+0x|created by`)

func TestTextsOmitVaryingParts(t *testing.T) {
	var k Keeper
	for range 3 {
		done := make(chan struct{})
		go func() { // a new goroutine each time
			defer close(done)
			tank := &tank{}
			stack, err := asPool(func() { tank.fill("value") })
			k.Record(0, "depot", 0, fmt.Errorf("%w of %p by goroutine 17", err, tank), stack)
			k.Record(0, "depot", 0, fmt.Errorf("%w at %p", makeError(), tank), nil)
		}()
		<-done
	}
	top := k.Top()
	if len(top) != 2 || top[0].Count != 3 || top[1].Count != 3 {
		t.Errorf("three panics and three errors became %v", top)
	}
	for _, e := range top {
		if found := varying.FindString(e.Text); found != "" {
			t.Errorf("%q in\n%s", found, e.Text)
		}
	}
}

// TestPoolFrames: frames below a handler, which only show how a worker got the instance,
// are removed.
func TestPoolFrames(t *testing.T) {
	const stack = `goroutine 34 [running]:
runtime/debug.Stack()
	/go/src/runtime/debug/stack.go:26 +0x5e
github.com/topogen/topogen/runtime/piper.(*runner).recovered(0xc000122000)
	/topogen/runtime/piper/turn.go:314 +0x45
panic({0x5254e0?, 0x5a1a50?})
	/go/src/runtime/panic.go:783 +0x132
example.com/shop.(*Parser).ReceiveLine(0xc00009e020, {0xc0000b8010, 0x7})
	/shop/shop.go:42 +0x1a5
example.com/shop.(*parserCell).receiveLine(...)
	/shop/topology_gen.go:90
github.com/topogen/topogen/runtime/piper.(*Worker).turn(0xc000142000)
	/topogen/runtime/piper/turn.go:118 +0x98
created by github.com/topogen/topogen/runtime/piper.(*Pool).start in goroutine 1
	/topogen/runtime/piper/pool.go:290 +0x105
`
	const want = `parser: no such line
example.com/shop.(*Parser).ReceiveLine
	/shop/shop.go:42
example.com/shop.(*parserCell).receiveLine
	/shop/topology_gen.go:90`
	var k Keeper
	k.Record(3, "parser", 1, errors.New("no such line"), []byte(stack))
	if got := onlyText(t, &k); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzTraceOfPanic(f *testing.F) {
	f.Add(debug.Stack())
	f.Add([]byte("panic(\n\tx +0x1\n\truntime.\npanic\ncreated by "))
	f.Fuzz(func(t *testing.T, stack []byte) {
		text := textOf("where", "reason", traceOfPanic(stack))
		if len(text) > textMax || plain(text) != text && len(text) < textMax {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	})
}

// onlyText returns the text of the only record.
func onlyText(t *testing.T, k *Keeper) string {
	t.Helper()
	top := k.Top()
	if len(top) != 1 {
		t.Fatalf("%d records, want 1: %v", len(top), top)
	}
	return top[0].Text
}
