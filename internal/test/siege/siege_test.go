package siege

import (
	"context"
	"errors"
	"net"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/child"
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{"server": serve})
	os.Exit(m.Run())
}

// serve takes 64 MiB and computes when the first connection comes.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		if _, err := l.Accept(); err == nil {
			kept = []byte(strings.Repeat("x", 64<<20))
			for {
				kept[0]++
			}
		}
	}()
	os.Stderr.WriteString("ready\n")
	Ready(l.Addr().String())
	return nil
}

var kept []byte

// TestProcess: memory and processor time are those of the child.
func TestProcess(t *testing.T) {
	p := Start(t, "server")
	memory, cpu := p.restartPeak(t), p.CPU(t)
	c, err := net.Dial("tcp", p.Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for p.peak(t)-memory < 64<<20 || p.CPU(t)-cpu < 100*time.Millisecond {
		// go test ends a process that uses nothing.
	}
	if p.Log() != "ready\n" {
		t.Errorf("the log is %q", p.Log())
	}
}

// TestOffer: calls are made at the rate, and count only if they end in time without an error.
func TestOffer(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	fails := errors.New("no")
	for _, test := range []struct {
		name   string
		call   func(context.Context) error
		served int
	}{
		{"at once", func(context.Context) error { made.Add(1); return nil }, 20},
		{"one in two", func(context.Context) error {
			if made.Add(1)%2 == 0 {
				return fails
			}
			return nil
		}, 10},
		{"never", func(ctx context.Context) error { <-ctx.Done(); made.Add(1); return ctx.Err() }, 0},
	} {
		made.Store(0)
		s := Victim{Call: test.call, Rate: 1000, Deadline: 10 * time.Millisecond}.offer(t.Context(), 20*time.Millisecond)
		if s.Offered != 20 || s.Served > test.served || made.Load() != 20 || (s.Err == nil) != (s.Served == s.Offered) {
			t.Errorf("%s: %d calls were made, got %+v, want %d served", test.name, made.Load(), s, test.served)
		}
	}
}

func TestParse(t *testing.T) {
	got := parse("# Security\n| a | b |\n\n" + header + ` stranger | node | kept |
|---|---|---|---|---|
| web | bytes | 64 KiB, 5 s | — | the rest |
| web | log keys | none | 4,096 | 1 |

| web | bytes | no | no | table |
`)
	want := []Cell{
		{"web", "bytes", "stranger", "64 KiB, 5 s"},
		{"web", "log keys", "stranger", "none"},
		{"web", "log keys", "node", "4,096"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got[0].Figures(t, Bytes(64<<10), Time(5*time.Second))
	got[1].Figures(t)
	got[2].Figures(t, Count(4096))
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		Bytes(12): "12 B", Bytes(64 << 10): "64 KiB", Bytes(4<<20 + 1<<19): "4.5 MiB", Bytes(int64(1 << 30)): "1 GiB", Bytes(-3 << 20): "-3 MiB",
		Count(7): "7", Count(1024): "1,024", Count(int64(1234567)): "1,234,567",
		Time(50 * time.Millisecond): "50 ms", Time(30 * time.Second): "30 s", Time(90 * time.Second): "90 s", Time(time.Minute): "1 minute", Time(2 * time.Minute): "2 minutes",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
