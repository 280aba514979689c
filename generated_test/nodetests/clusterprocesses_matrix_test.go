package nodetests_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/points"
	"github.com/topogen/topogen/internal/test/speed"
)

// The matrix of faults: each fault of a process at each point, with each engine of the address table, on 2, 3
// and 5 nodes under load.
type matrixRow struct {
	fault  string
	point  matrixPoint
	engine string
	nodes  int
}

func (r matrixRow) String() string {
	return fmt.Sprintf("%s at %q with %s on %d nodes", r.fault, r.point.name, r.engine, r.nodes)
}

// When a process reaches a point.
type matrixPhase int

const (
	whileStarting matrixPhase = iota
	underLoad
	whileFinishing // all sources are done
	whileDraining  // the process has got SIGTERM
)

type matrixPoint struct {
	name        string
	phase       matrixPhase
	calls       int  // the process stops at one of the first calls
	coordinator bool // only the first node reaches it
}

var matrixPoints = []matrixPoint{
	{name: "before entering", phase: whileStarting, calls: 1},
	{name: "after entering", phase: whileStarting, calls: 1},
	{name: "before handler", phase: underLoad, calls: 20_000},
	{name: "after handler", phase: underLoad, calls: 20_000},
	{name: "before confirmation", phase: underLoad, calls: 500},
	{name: "confirmation arrives", phase: underLoad, calls: 2_000},
	{name: "status", phase: whileFinishing, calls: 2},
	{name: "query", phase: whileFinishing, calls: 3, coordinator: true},
	{name: "answer", phase: whileFinishing, calls: 3},
	{name: "before commit", phase: whileFinishing, calls: 3, coordinator: true},
	{name: "after commit", phase: whileFinishing, calls: 3, coordinator: true},
	{name: "phase", phase: whileFinishing, calls: 4},
	{name: "finished", phase: whileFinishing, calls: 1},
	{name: "end", phase: whileFinishing, calls: 1},
	{name: "draining", phase: whileDraining, calls: 1},
	{name: "refuse", phase: whileDraining, calls: 2},
	{name: "left", phase: whileDraining, calls: 1},
}

const (
	faultCrash   = "crash"             // SIGKILL, and start again
	faultStop    = "stop and continue" // SIGSTOP, and SIGCONT
	faultTerm    = "SIGTERM"           // and start again
	faultReplace = "replacement"       // SIGKILL, and start elsewhere with an empty folder
	faultZombie  = "zombie"            // SIGSTOP, start elsewhere with an empty folder, and SIGCONT
)

// matrixRows are all rows.
func matrixRows() (rows []matrixRow) {
	for _, nodes := range []int{2, 3, 5} {
		for _, engine := range []string{"raft", "etcd", "broadcast"} {
			for _, point := range matrixPoints {
				for _, fault := range []string{faultCrash, faultStop, faultTerm, faultReplace, faultZombie} {
					switch {
					case fault == faultTerm && point.phase == whileDraining: // it has got SIGTERM
					case (fault == faultReplace || fault == faultZombie) && engine == "raft" && nodes == 2: // a majority of the disks is lost
					case fault == faultZombie && point.name == "before entering" && nodes == 2: // with fence: off either process may enter
					default:
						rows = append(rows, matrixRow{fault, point, engine, nodes})
					}
				}
			}
		}
	}
	return rows
}

// matrixStep leads from each row to the next one, through all of them: it is a prime number, and no divisor of their
// number.
const matrixStep = 7919

// TestClusterProcessesFaultsAtPoints makes faults at points of the runtime. A seed selects a row of the matrix.
func TestClusterProcessesFaultsAtPoints(t *testing.T) {
	rows := matrixRows()
	first, end := speed.Seeds(t, 0, 3, uint64(len(rows)))
	speed.Landing(t)
	speed.NoRace(t)
	node := buildWithPoints(t)
	etcd := sync.OnceValue(func() string { return buildEtcd(t) })
	for seed := first; seed < end; seed++ {
		row := rows[seed%uint64(len(rows))*matrixStep%uint64(len(rows))]
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			began := time.Now()
			row.run(t, seed, node, etcd)
			t.Logf("seed %d: %v", seed, time.Since(began))
			if t.Failed() {
				t.Log(speed.Repeat(t, seed))
			}
		})
	}
}

func (r matrixRow) run(t *testing.T, seed uint64, node string, etcd func() string) {
	random := rand.New(rand.NewPCG(seed, 7))
	c := prepare(t, r.nodes)
	c.program = node
	env := []string{variableLinks + "=" + direct}
	switch r.engine {
	case "etcd":
		env = append(env, variableEngine+"="+startEtcd(t, etcd()))
	case "broadcast":
		env = append(env, variableEngine+"=broadcast")
	}
	if r.nodes == 2 {
		env = append(env, variableFence+"=off")
	}
	one := random.IntN(r.nodes)
	if r.point.coordinator {
		one = 0
	}
	at := points.Point{Name: r.point.name, Call: 1 + random.IntN(r.point.calls), Dir: t.TempDir()}
	for i := range c.nodes {
		if i == one {
			c.launch(i, append(slices.Clip(env), at.Environment())...)
		} else {
			c.launch(i, env...)
		}
	}
	victim := c.nodes[one]
	isReached := func() bool {
		_, err := os.Stat(at.Reached())
		return err == nil
	}
	if r.point.phase > whileStarting { // a process that waits at the point may keep instances from handling a message
		c.await("effects of all instances, or the point", func() bool { return c.hasStarted() || isReached() })
	}
	switch r.point.phase {
	case whileFinishing:
		c.finish()
	case whileDraining:
		c.terminate(one)
	}
	reached := false
	c.await(fmt.Sprintf("%s at %s", nodeName(one), at.Name), func() bool {
		reached = isReached()
		return reached || victim.hasEnded()
	})
	t.Logf("%s, call %d: reached %v", nodeName(one), at.Call, reached)
	if !reached && r.point.phase < whileFinishing {
		t.Fatalf("%s has ended: %v", nodeName(one), victim.err)
	}
	if reached {
		c.makeFault(r, one, at, env, random)
	}
	if r.point.phase == whileDraining && !reached {
		c.launch(one, env...) // it has drained before
	}
	if r.point.phase != whileFinishing {
		c.awaitEffects()
		c.finish()
	}
	c.awaitEnds(r, one, env)
	if r.fault == faultZombie && r.point.name == "before entering" {
		_ = victim.cmd.Process.Kill() // it was not replaced, so it waits until it may enter
	}
	c.checkAll()
}

// release makes the file for which a process waits at a point.
func (c *fleet) release(at points.Point) {
	c.t.Helper()
	if err := os.WriteFile(at.Released(), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// makeFault makes the fault of a row. The process of the node has stopped at a point.
func (c *fleet) makeFault(r matrixRow, one int, at points.Point, env []string, random *rand.Rand) {
	c.t.Helper()
	victim := c.nodes[one]
	elsewhere := append(slices.Clip(env), "TOPOGEN_ADDRESS="+loopback.Addresses(c.t, 1)[0], "TOPOGEN_DIR="+c.path("elsewhere"))
	again := func() {
		if r.point.name != "before entering" && random.IntN(2) == 0 {
			c.awaitOthersNotice(one)
		}
	}
	switch r.fault {
	case faultCrash:
		c.kill(one)
		again()
		c.launch(one, env...)
	case faultReplace:
		c.kill(one)
		again()
		c.launch(one, elsewhere...)
	case faultStop:
		c.signal(victim, syscall.SIGSTOP)
		again()
		c.signal(victim, syscall.SIGCONT)
		c.release(at)
		if r.point.phase == whileDraining {
			_ = c.ended(victim) // checkEnds checks the error
			c.launch(one, env...)
		}
	case faultTerm:
		c.terminate(one)
		c.release(at)
		if r.point.phase != whileFinishing {
			_ = c.ended(victim) // checkEnds checks the error
			// It has no figures then.
			victim.killed = strings.Contains(victim.output.String(), "stopped before it had joined the cluster")
			c.launch(one, env...)
		}
	case faultZombie:
		c.signal(victim, syscall.SIGSTOP)
		victim.killed = true // it ends with an error
		if r.point.name != "before entering" {
			c.awaitOthersNotice(one)
		}
		second := c.launch(one, elsewhere...)
		c.await("the second process to enter the cluster", func() bool { return c.hasEntered(second) || c.othersHaveEnded(one) })
		c.signal(victim, syscall.SIGCONT)
		c.release(at)
	}
}

// awaitOthersNotice waits until the other nodes believe that a node is dead, as far as they have not ended.
func (c *fleet) awaitOthersNotice(one int) {
	c.t.Helper()
	for i, p := range c.nodes {
		if i == one {
			continue
		}
		c.await(fmt.Sprintf("%s to notice that %s is dead", p.cmd.Path, nodeName(one)), func() bool {
			text := p.output.String()
			return p.hasEnded() || strings.Contains(text, "cannot be reached node="+nodeName(one)) || strings.Contains(text, "has ended or cannot be reached node="+nodeName(one))
		})
	}
}

// nextRunAfter is how long a process with an empty folder, or whose predecessor has ended in order, may wait for others
// after all of them have ended. Then it waits for the next run of the topology.
const nextRunAfter = 40 * time.Second

// hasEntered reports whether a process that was started elsewhere is in the address table, or has ended.
func (c *fleet) hasEntered(p *fleetProcess) bool {
	_, err := os.Stat(c.path("elsewhere", nodeName(p.node), "process"))
	return err == nil || p.hasEnded()
}

func (c *fleet) othersHaveEnded(one int) bool {
	for i, p := range c.nodes {
		if i != one && !p.hasEnded() {
			return false
		}
	}
	return true
}

// awaitEnds waits until all processes have ended. A process that got SIGTERM while the topology finishes may have
// left before the end, so the others wait until its node runs again.
func (c *fleet) awaitEnds(r matrixRow, one int, env []string) {
	c.t.Helper()
	first, ended := len(c.nodes), time.Time{}
	c.await("the ends", func() bool {
		p, alone := c.nodes[one], c.othersHaveEnded(one)
		switch {
		case alone && p.hasEnded():
			if p.start >= first && strings.Contains(p.output.String(), "this node is fenced") { // it has entered, and the others have ended
				p.killed = true // it has no figures
			}
			return true
		case alone && ended.IsZero(), !alone && p.hasEnded() != (r.fault == faultTerm):
			ended = time.Now()
		case !alone && r.fault == faultTerm && len(c.all) == first && time.Since(ended) > 5*time.Second:
			c.launch(one, env...)
		case alone && p.start >= first && r.fault != faultCrash && time.Since(ended) > nextRunAfter:
			c.t.Logf("%s waits for the next run", nodeName(one))
			c.kill(one)
		}
		return false
	})
}

// startEtcd starts an etcd that ends with the test. It returns the URL for its clients.
func startEtcd(t *testing.T, program string) (url string) {
	t.Helper()
	cmd := exec.Command(program, t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if url, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}
