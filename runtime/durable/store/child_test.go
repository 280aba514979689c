//go:build unix

package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/durable/core"
	"github.com/topogen/topogen/runtime/durable/store"
)

// A child is another process of this test binary. It runs one of the functions in children
// instead of the tests.
const (
	childVariable  = "TOPOGEN_STORE_TEST_CHILD"
	childArguments = "TOPOGEN_STORE_TEST_ARGUMENTS"
)

var children = map[string]func(arguments []string){"open": childOpens, "write": childWrites, "restore": childRestores}

func TestMain(m *testing.M) {
	if f := children[os.Getenv(childVariable)]; f != nil {
		f(strings.Split(os.Getenv(childArguments), "\n"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type child struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func start(t testing.TB, what string, arguments ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+what, childArguments+"="+strings.Join(arguments, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &child{cmd, bufio.NewReader(out)}
}

// line returns the next line of the child, or false at the end of its output.
func (c *child) line(t testing.TB) (string, bool) {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if errors.Is(err, io.EOF) {
		return "", false
	}
	must(t, err)
	return strings.TrimSpace(line), true
}

// childOpens opens a store and waits until it is killed.
func childOpens(arguments []string) {
	if _, err := store.Open(arguments[0], store.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("opened")
	time.Sleep(time.Hour)
}

// TestTwoProcesses: a store that another process has open is refused at once, with the
// number of that process. When the process is killed, the store can be opened.
func TestTwoProcesses(t *testing.T) {
	dir := memdir.Quick(t)
	c := start(t, "open", dir)
	if line, _ := c.line(t); line != "opened" {
		t.Fatal(line)
	}
	_, err := store.Open(dir, store.Options{})
	if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", c.cmd.Process.Pid)) {
		t.Error(err)
	}
	other := start(t, "open", dir)
	if line, _ := other.line(t); !strings.Contains(line, "in use by process") {
		t.Error(line)
	}
	must(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait() // it was killed
	s := open(t, dir, store.Options{})
	_, err = store.Open(dir, store.Options{})
	if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d ", os.Getpid())) {
		t.Error(err)
	}
	must(t, s.Close())
}

// TestOpenAfterClose opens a closed store while the process starts other processes, which
// have copies of its files for a moment.
func TestOpenAfterClose(t *testing.T) {
	dir := memdir.Quick(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = exec.Command("true").Run()
			}
		}
	}()
	for range speed.Pick(t, 10, 200, 200) {
		s, err := store.Open(dir, store.Options{})
		must(t, err)
		must(t, s.Close())
	}
	close(stop)
	<-stopped
}

// change is the i-th transaction of a child.
func change(kv core.KV, i int) {
	rng := rand.New(rand.NewPCG(uint64(i), 0))
	kv.Put(0, []byte("last"), []byte(strconv.Itoa(i)))
	records := 1
	if i%2 == 0 {
		records += rng.IntN(20)
	}
	for range records {
		key := fmt.Appendf(nil, "key %d", rng.IntN(300))
		if rng.IntN(3) == 0 {
			kv.Delete(core.Table(rng.IntN(4)), key)
		} else {
			kv.Put(core.Table(rng.IntN(4)), key, []byte(strings.Repeat("v", rng.IntN(800)+rng.IntN(2)*rng.IntN(9000))))
		}
	}
}

// childWrites carries out transactions, and prints the number of each one that has been
// committed. Its arguments are the directory, the number of the write at which it kills
// itself (0: never), and how much of this write it carries out first: "none", "half" or
// "all".
func childWrites(arguments []string) {
	s, err := store.Open(arguments[0], store.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	at, _ := strconv.Atoi(arguments[1])
	writes := 0
	s.HookWrites(func(f store.WriteAt) store.WriteAt {
		return func(b []byte, offset int64) (int, error) {
			if writes++; writes == at {
				switch arguments[2] {
				case "half":
					_, _ = f(b[:len(b)/2], offset)
				case "all":
					_, _ = f(b, offset)
				}
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return f(b, offset)
		}
	})
	for i := last(s) + 1; ; i++ {
		if err := s.Update(func(tx store.Tx) error { change(tx, i); return nil }); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// last returns the number of the last transaction of a child.
func last(s store.Store) (n int) {
	_ = s.View(func(tx store.Tx) error { n, _ = strconv.Atoi(string(tx.Get(0, []byte("last")))); return nil })
	return n
}

// history replays the transactions of children in memory.
type history struct {
	n     int
	store *store.Memory
}

func (h *history) at(t testing.TB, n int) map[string]string {
	t.Helper()
	for ; h.n < n; h.n++ {
		must(t, h.store.Update(func(tx store.Tx) error { change(tx, h.n+1); return nil }))
	}
	return dump(t, h.store)
}

// survived checks a store after its process was killed: it has exactly the transactions
// that were answered, and perhaps the one that was running.
func survived(t testing.TB, dir string, answered int, h *history, what string) int {
	t.Helper()
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer func() { must(t, s.Close()) }()
	n := last(s)
	if n != answered && n != answered+1 {
		t.Fatalf("%s: the store has %d transactions, %d were answered", what, n, answered)
	}
	if !maps.Equal(dump(t, s), h.at(t, n)) {
		t.Fatalf("%s: the store differs from transaction %d", what, n)
	}
	return n
}

// drain reads the answers of a child until its end.
func (c *child) drain(t testing.TB, answered int) int {
	t.Helper()
	for line, ok := c.line(t); ok; line, ok = c.line(t) {
		n, err := strconv.Atoi(line)
		must(t, err)
		answered = n
	}
	return answered
}

// TestKilledAtEachWrite kills a process at each of its first writes: before, in the middle
// and after.
func TestKilledAtEachWrite(t *testing.T) {
	speed.NoRace(t)
	writes := speed.Pick(t, 2, 60, 60)
	dir := memdir.Quick(t)
	h := &history{store: store.NewMemory()}
	answered := 0
	for at := 1; at <= writes; at++ {
		for _, part := range []string{"none", "half", "all"} {
			what := fmt.Sprintf("killed at write %d, of which %s was carried out", at, part)
			answered = start(t, "write", dir, strconv.Itoa(at), part).drain(t, answered)
			answered = survived(t, dir, answered, h, what)
		}
	}
	if answered < writes/10 { // a transaction has about 15 writes
		t.Errorf("only %d transactions", answered)
	}
}

// TestKilledAtAnyTime kills a process at random instants, also while it opens the store.
func TestKilledAtAnyTime(t *testing.T) {
	speed.NoRace(t)
	rounds := speed.Pick(t, 2, 40, 400)
	dir := memdir.Quick(t)
	h := &history{store: store.NewMemory()}
	rng := rand.New(rand.NewPCG(5, 6))
	answered := 0
	for round := range rounds {
		c := start(t, "write", dir, "0", "")
		timer := time.AfterFunc(time.Duration(rng.IntN(60_000))*time.Microsecond, func() { _ = c.cmd.Process.Kill() })
		answered = c.drain(t, answered)
		timer.Stop()
		answered = survived(t, dir, answered, h, fmt.Sprint("round ", round))
	}
	t.Logf("%d transactions", answered)
}
