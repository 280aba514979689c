package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/cluster"
	"github.com/topogen/topogen/runtime/pool"
	"github.com/topogen/topogen/runtime/topo"
)

// TestMain makes this executable the example's program, because runNodes starts its own
// executable.
func TestMain(m *testing.M) {
	const program = "CLUSTER_PROGRAM"
	if os.Getenv(program) != "" {
		main()
		return
	}
	os.Setenv(program, "true")
	os.Exit(m.Run())
}

func noCluster() *cluster.View { return nil }

// TestReportFindsFaults: the proof fails if a message is missing, came twice, or both, so
// that the total is right.
func TestReportFindsFaults(t *testing.T) {
	first, second, third := Add{"ann", 0, 1}, Add{"ann", 0, 2}, Add{"bob", 0, 1}
	for name, c := range map[string]struct {
		adds  []Add
		wrong string
	}{
		"right":               {[]Add{first, third, second}, ""},
		"missing":             {[]Add{first, third}, "wrong counts of names: 1; messages that came twice or after a missing one: 0"},
		"missing name":        {[]Add{first, second}, "wrong counts of names: 1; messages that came twice or after a missing one: 0"},
		"twice":               {[]Add{first, second, second, third}, "wrong counts of names: 1; messages that came twice or after a missing one: 1"},
		"order":               {[]Add{second, first, third}, "wrong counts of names: 0; messages that came twice or after a missing one: 2"},
		"missing and twice":   {[]Add{first, first, third}, "wrong counts of names: 0; messages that came twice or after a missing one: 1"},
		"twice for a missing": {[]Add{first, first, second}, "wrong counts of names: 2; messages that came twice or after a missing one: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			counter, sent := newCounter(topo.Instance{}), RecordCounter()
			for _, m := range c.adds {
				counter.ReceiveAdd(&m)
			}
			counter.Finish(sent.Sender())
			var out strings.Builder
			r := newReport(&out, noCluster)
			r.ReceiveSent(Sent{Counts: map[string]int{"ann": 2, "bob": 1}})
			r.ReceiveTotal(sent.Total[0])
			err := r.Finish()
			text := out.String()
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || err.Error() != c.wrong) {
				t.Errorf("got %v, want %q; printed:\n%s", err, c.wrong, text)
			}
			if proven := strings.Contains(text, "nothing is missing"); proven != (c.wrong == "") {
				t.Errorf("printed:\n%s", text)
			}
		})
	}
}

// TestSourcesShareTheMessages: all sources together send the number on the command line.
func TestSourcesShareTheMessages(t *testing.T) {
	for _, adds := range []int{0, 1, 7, 8, 1001} {
		sum := 0
		for i := range 8 {
			sum += newLoad(topo.Instance{Index: i, Number: 8}, adds).left
		}
		if sum != adds {
			t.Errorf("the sources send %d messages, want %d", sum, adds)
		}
	}
}

// TestOneStepAfterTheOther runs the topology in one goroutine.
func TestOneStepAfterTheOther(t *testing.T) {
	for seed := range uint64(5) {
		var out strings.Builder
		topology, err := New(Processors{
			Load:    func(in topo.Instance) (*Load, error) { return newLoad(in, 5000), nil },
			Counter: func(in topo.Instance) (*Counter, error) { return newCounter(in), nil },
			Report:  func(topo.Instance) (*Report, error) { return newReport(&out, noCluster), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := topology.Stepper(seed).Run(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, &out)
		}
		checkOutput(t, out.String(), 1, 5000)
	}
}

// TestStop: if the topology is stopped, the proof is made for the messages that were sent. A
// step is a handler call, so most messages have not been sent after this number of steps.
func TestStop(t *testing.T) {
	const steps = 10_000
	var out strings.Builder
	report := newReport(&out, noCluster)
	topology, err := New(Processors{
		Load:    func(in topo.Instance) (*Load, error) { return newLoad(in, addsMax), nil },
		Counter: func(in topo.Instance) (*Counter, error) { return newCounter(in), nil },
		Report:  func(topo.Instance) (*Report, error) { return report, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := topology.Stepper(1)
	for range steps {
		s.Step()
	}
	s.Stop()
	if err := s.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	adds := sum(report.sent)
	if adds == 0 || adds == addsMax {
		t.Errorf("%d messages were sent", adds)
	}
	checkOutput(t, out.String(), 1, adds)
}

// checkOutput checks what a run has printed.
func checkOutput(t *testing.T, out string, nodes, adds int) {
	t.Helper()
	want := []string{
		fmt.Sprintf(`(?m)^%d messages in [0-9.]+ s, [0-9]+/s$`, adds),
		fmt.Sprintf(`(?m)^8 sources have sent %d messages with [0-9]+ names; 64 counters have counted %d$`, adds, adds),
		`(?m)^each name was counted as often as it was sent: nothing is missing, nothing came twice or out of order$`,
	}
	switch nodes {
	case 1:
		want = append(want, `(?m)^one process runs everything$`)
	default:
		want = append(want, `(?m)^ +instances`+columns(nodes, func(i int) string { return fmt.Sprintf("n%d", i+1) }),
			`(?m)^ +load`+columns(nodes, func(int) string { return fmt.Sprint(8 / nodes) }),
			`(?m)^ +counter`+columns(nodes, func(int) string { return fmt.Sprint(64 / nodes) }),
			`(?m)^ +report`+columns(nodes, func(i int) string { return fmt.Sprint(1 - min(i, 1)) }))
	}
	for _, pattern := range want {
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("no line like %s in\n%s", pattern, out)
		}
	}
}

// columns is the pattern of the cells of a row.
func columns(nodes int, cell func(i int) string) (pattern string) {
	for i := range nodes {
		pattern += " +" + cell(i)
	}
	return pattern + "$"
}

// TestNodes runs the program as in its README.
func TestNodes(t *testing.T) {
	adds := speed.Pick(t, 5000, 50_000, 50_000)
	for _, nodes := range speed.Pick(t, []int{2}, []int{1, 2, 4}, []int{1, 2, 4}) {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			dir := t.TempDir()
			p := program(t, dir, nodes, adds)
			var out strings.Builder
			p.Stdout, p.Stderr = &out, &out
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			t.Parallel() // the nodes wait for each other while the other tests run
			if err := p.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			checkOutput(t, out.String(), nodes, adds)
			checkEmpty(t, dir)
		})
	}
}

// TestInterrupt: an interrupt drains all nodes. The proof is made for the messages that
// were sent.
func TestInterrupt(t *testing.T) {
	speed.Landing(t) // the report prints the first rate after a second; TestStop stops the topology without processes
	for _, nodes := range []int{1, 4} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			dir := t.TempDir()
			p := program(t, dir, nodes, addsMax)
			stdout, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			p.Stderr = &stderr
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			interrupted := false
			for lines := bufio.NewScanner(io.TeeReader(stdout, &out)); lines.Scan(); {
				if counted := regexp.MustCompile(` messages/s, [1-9][0-9]* counted$`); !interrupted && counted.MatchString(lines.Text()) {
					interrupted = true
					if err := p.Process.Signal(os.Interrupt); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := p.Wait(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, &out, &stderr)
			}
			counted := regexp.MustCompile(`(?m)^([0-9]+) messages in `).FindStringSubmatch(out.String())
			var adds int
			if counted != nil {
				_, _ = fmt.Sscan(counted[1], &adds)
			}
			if adds == 0 || adds == addsMax {
				t.Errorf("%d messages were counted", adds)
			}
			checkOutput(t, out.String(), nodes, adds)
			checkEmpty(t, dir)
		})
	}
}

// TestANodeThatFails: if the process of a node cannot run, the program ends with its
// error, and with the other nodes.
func TestANodeThatFails(t *testing.T) {
	dir := t.TempDir()
	p := program(t, dir, 2, 1000)
	p.Env = append(p.Env, "TOPOGEN_INSECURE=perhaps") // which the nodes refuse
	out, err := p.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cluster: node n") || !strings.Contains(string(out), "TOPOGEN_INSECURE must be true or false") {
		t.Errorf("ended with %v and printed:\n%s", err, out)
	}
	checkEmpty(t, dir)
}

// TestAnErrorEndsAllNodes runs two nodes in this process. The report on n1 fails, and n2
// ends with the error too.
func TestAnErrorEndsAllNodes(t *testing.T) {
	ports, err := freePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cluster.VariableNodes, fmt.Sprintf("n1=127.0.0.1:%d,n2=127.0.0.1:%d", ports[0], ports[1]))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, results := t.TempDir(), make(map[string]chan error)
	for _, name := range []string{"n1", "n2"} {
		topology, err := New(Processors{
			Load:    func(in topo.Instance) (*Load, error) { return newLoad(in, 1000), nil },
			Counter: func(in topo.Instance) (*Counter, error) { return newCounter(in), nil },
			Report: func(topo.Instance) (*Report, error) {
				r := newReport(io.Discard, noCluster)
				r.wrong = 1
				return r, nil
			},
		}, pool.Node(name), pool.NodeDir(dir))
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		results[name] = result
		go func() { result <- topology.Run(ctx) }()
	}
	const reason = "wrong counts of names: 0"
	var failed *pool.HandlerError
	if err := <-results["n1"]; !errors.As(err, &failed) || failed.Processor != "report" || !strings.Contains(err.Error(), reason) {
		t.Errorf("n1 ended with %v", err)
	}
	if err := <-results["n2"]; !errors.Is(err, cluster.ErrNodeFailed) || !strings.Contains(err.Error(), reason) {
		t.Errorf("n2 ended with %v", err)
	}
}

// program returns the program, with a folder for its files.
func program(t *testing.T, dir string, nodes, adds int) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	p := exec.CommandContext(ctx, executable, "-nodes", fmt.Sprint(nodes), "-adds", fmt.Sprint(adds))
	p.Env = append(os.Environ(), "TMPDIR="+dir, "TMP="+dir)
	return p
}

// checkEmpty checks that the program has left no file.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files were left: %v, %v", files, err)
	}
}
