package wal_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/topogen/topogen/internal/test/memdir"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// A child is another process of this test binary. It runs one of the functions in children
// instead of the tests.
const (
	childVariable  = "TOPOGEN_WAL_TEST_CHILD"
	childArguments = "TOPOGEN_WAL_TEST_ARGUMENTS"
)

var children = map[string]func(){"open": childOpens, "write": childWrites}

type child struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func start(t *testing.T, what string, arguments ...string) *child {
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

func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

func childOpens() {
	_, _, err := wal.Open(os.Getenv(childArguments), own, wal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("opened")
}

// childSegmentBytes is large enough that a child is often killed in the middle of a segment.
const childSegmentBytes = 64 << 10

// childWrites saves entries until it is killed. After each save it prints the last index.
// At random it also saves a snapshot.
func childWrites() {
	etcdwal.SegmentSizeBytes = childSegmentBytes
	arguments := strings.Split(os.Getenv(childArguments), "\n")
	mode, _ := strconv.Atoi(arguments[1])
	l, s, err := wal.Open(arguments[0], own, wal.Options{Sync: wal.Sync(mode)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 0))
	last := s.Snapshot.GetMetadata().GetIndex() + uint64(len(s.Entries))
	for {
		var entries []*raftpb.Entry
		for range 1 + rng.IntN(20) {
			last++
			entries = append(entries, entry(last, 1, dataOf(last)))
		}
		if err = l.Save(state(1, 1, last), entries, true); err == nil && rng.IntN(50) == 0 {
			err = l.SaveSnapshot(snapshot(last, 1, dataOf(last)))
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(last)
	}
}

// dataOf returns the data of an entry. Some data is long, some is short.
func dataOf(index uint64) string {
	return fmt.Sprint(index, strings.Repeat("x", int(index*index%1500)))
}

// TestKilledProcess: in every mode a killed process loses no saved data.
func TestKilledProcess(t *testing.T) {
	speed.NoRace(t)
	etcdwal.SegmentSizeBytes = childSegmentBytes
	t.Cleanup(func() { etcdwal.SegmentSizeBytes = segmentBytes })
	rounds := speed.Pick(t, 1, 25, 500)
	for _, mode := range []wal.Sync{wal.Always, wal.Interval, wal.None} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			dir := memdir.Quick(t)
			for round := range rounds {
				c := start(t, "write", dir, strconv.Itoa(int(mode)))
				acknowledged := uint64(0)
				for range 1 + rand.IntN(200) {
					acknowledged = number(t, c.line(t))
				}
				must(t, c.cmd.Process.Signal(syscall.SIGKILL))
				for { // the rest of its output
					line, err := c.out.ReadString('\n')
					if errors.Is(err, io.EOF) {
						break
					}
					must(t, err)
					acknowledged = number(t, strings.TrimSpace(line))
				}
				_ = c.cmd.Wait()
				l, s := open(t, dir, wal.Options{Sync: mode})
				index := s.Snapshot.GetMetadata().GetIndex()
				if index > 0 && string(s.Snapshot.GetData()) != dataOf(index) {
					t.Errorf("round %d: the snapshot at %d has wrong data", round, index)
				}
				for _, e := range s.Entries {
					if index++; e.GetIndex() != index || string(e.GetData()) != dataOf(index) {
						t.Fatalf("round %d: entry %d is %v", round, index, e)
					}
				}
				if index < acknowledged {
					t.Fatalf("round %d: the log must have all %d acknowledged entries, got %d", round, acknowledged, index)
				}
				must(t, l.Close())
			}
		})
	}
}

func number(t *testing.T, line string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		t.Fatal(line)
	}
	return n
}
