package idle

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/topogen/topogen/bench/topologies/few"
	"github.com/topogen/topogen/bench/topologies/many"
	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/runtime/pool"
)

const (
	nodes       = 3
	connections = 2                     // of the bare server: a node has one to each other node
	settleTime  = 20 * time.Second      // until the nodes are idle: links are released after 5 s
	window      = 30 * time.Second      // 1 % of it is 30 ticks of the clock of processor time
	tick        = 10 * time.Millisecond // of that clock, on all systems that Go supports
	asked       = 100                   // instances, so that nodes have connections and links
)

func TestMain(m *testing.M) {
	child.Run(map[string]func() error{"many": runMany, "few": runFew, "bare": runBare})
	os.Exit(m.Run())
}

func quiet() pool.Option { return pool.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))) }

func runMany() error {
	t, err := many.New(many.Processors{}, quiet())
	if err != nil {
		return err
	}
	return run(t.Run, func(id uint64) error {
		_, err := t.Api().AskAddToCounter(context.Background(), many.Add{ID: id, N: 1})
		return err
	})
}

func runFew() error {
	t, err := few.New(few.Processors{}, quiet())
	if err != nil {
		return err
	}
	return run(t.Run, func(id uint64) error {
		_, err := t.Api().AskAddToCounter(context.Background(), few.Add{ID: id, N: 1})
		return err
	})
}

// run runs a node, and prints a line when instances of all nodes have answered it.
func run(topology func(context.Context) error, ask func(id uint64) error) error {
	if err := flag.Set("test.bench", "."); err != nil { // no checks of state machines, as in a program that is not a test
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- topology(context.Background()) }()
	for id := range uint64(asked) {
		if err := ask(id); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	go profile()
	return <-ended
}

// profile writes profiles of the heap and of processor time into the folder IDLE_PROFILES.
func profile() {
	dir := os.Getenv("IDLE_PROFILES")
	if dir == "" {
		return
	}
	time.Sleep(settleTime)
	runtime.GC() // the profile is that of the last collection
	for _, name := range []string{"heap", "goroutine", "cpu"} {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.pprof", name, os.Getenv("TOPOGEN_NODE"), os.Getpid())))
		if err != nil {
			panic(err)
		}
		if name == "cpu" {
			_ = pprof.StartCPUProfile(f)
			time.Sleep(window)
			pprof.StopCPUProfile()
			continue
		}
		_ = pprof.Lookup(name).WriteTo(f, 0)
	}
}

func runBare() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	healthpb.RegisterHealthServer(s, health.NewServer())
	fmt.Println(l.Addr())
	return s.Serve(l)
}

// process is a child that is measured.
type process struct {
	kind  string
	pid   int
	ready chan string // gets the line that it prints
}

func start(b *testing.B, kind string, env ...string) process {
	c := child.Command(kind)
	c.Env, c.Stderr = append(c.Env, env...), os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	p := process{kind, c.Process.Pid, make(chan string, 1)}
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		p.ready <- strings.TrimSpace(line)
	}()
	return p
}

func startNodes(b *testing.B, kind string) (started []process) {
	var list []string
	for i, a := range loopback.Addresses(b, nodes) {
		list = append(list, fmt.Sprintf("n%d=%s", i+1, a))
	}
	for i := range nodes {
		name := fmt.Sprint("n", i+1)
		started = append(started, start(b, kind, "TOPOGEN_NODE="+name, "TOPOGEN_NODES="+strings.Join(list, ","),
			"TOPOGEN_INSECURE=1", "TOPOGEN_DIR="+filepath.Join(b.TempDir(), name)))
	}
	return started
}

func startBare(b *testing.B) process {
	p := start(b, "bare")
	address := <-p.ready
	p.ready <- address
	for range connections {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		if _, err := healthpb.NewHealthClient(conn).Check(b.Context(), new(healthpb.HealthCheckRequest)); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

// ticks returns the processor time of a process.
func (p process) ticks(b *testing.B) (n int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third one
	for _, f := range fields[11:13] {                                                   // utime and stime
		v, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		n += v
	}
	return n
}

// memory returns a size of a process in MiB.
func (p process) memory(b *testing.B, name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		b.Fatal(err)
	}
	var kib float64
	_, rest, _ := strings.Cut(string(text), name+":")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

func BenchmarkIdle(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("reads /proc")
	}
	all := append(append(startNodes(b, "many"), startNodes(b, "few")...), startBare(b))
	for _, p := range all {
		if line := <-p.ready; line == "" {
			b.Fatalf("a process of %s has ended", p.kind)
		}
	}
	time.Sleep(settleTime)
	before := map[int]int{}
	for _, p := range all {
		before[p.pid] = p.ticks(b)
	}
	time.Sleep(window)
	for _, kind := range []string{"many", "few", "bare"} {
		b.Run(kind, func(b *testing.B) {
			sums, n := map[string]float64{}, 0.0
			for _, p := range all {
				if p.kind == kind {
					n++
					sums["%core"] += 100 * float64(time.Duration(p.ticks(b)-before[p.pid])*tick) / float64(window)
					sums["MiB"] += p.memory(b, "VmRSS")
					sums["anonymous-MiB"] += p.memory(b, "RssAnon")
					sums["peak-MiB"] += p.memory(b, "VmHWM")
				}
			}
			for unit, sum := range sums {
				b.ReportMetric(sum/n, unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
