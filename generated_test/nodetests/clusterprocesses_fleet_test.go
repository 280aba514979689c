package nodetests_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/clusterprocesses"
	"github.com/topogen/topogen/internal/test/child"
	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/rerun"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/transport/certs"
)

const (
	fleetNodes = 4
	files      = 8 + 12 + 4 + 4 // of all instances: sources, workers, ledgers, readers
)

// fleet is a run of the nodes.
type fleet struct {
	t         *testing.T
	dir       string
	addresses []string
	ca        *certs.Authority
	links     [][]*link       // from the first to the second
	nodes     []*fleetProcess // the newest process of each node
	all       []*fleetProcess // in the order of their starts
	program   string          // that the nodes run; "": the test program
}

// fleetProcess is a start of a node.
type fleetProcess struct {
	node   int
	start  int
	killed bool // by the test, so it has no figures
	cmd    *exec.Cmd
	done   chan struct{} // closed when it has ended
	err    error         // valid after done
	output output
}

// prepare makes the addresses, the links and the certificates of n nodes.
func prepare(t *testing.T, n int) *fleet {
	speed.Landing(t) // TestRandomClusters of runtime/cluster has these faults in virtual time
	speed.NoRace(t)
	if runtime.GOOS == "windows" {
		t.Skip("the nodes are stopped with signals")
	}
	rerun.WhenCodeChanges(t)
	c := &fleet{t: t, dir: t.TempDir(), nodes: make([]*fleetProcess, n)}
	c.connect()
	c.certificates()
	return c
}

// start starts the nodes, with an environment that is added to the usual one, and waits
// until each instance has handled messages.
func start(t *testing.T, env ...string) *fleet {
	c := prepare(t, fleetNodes)
	for i := range c.nodes {
		c.launch(i, env...)
	}
	c.awaitStart()
	return c
}

// awaitStart waits until each instance has handled messages.
func (c *fleet) awaitStart() {
	c.t.Helper()
	c.await("effects of all instances", c.hasStarted)
}

// hasStarted reports whether each instance has handled messages.
func (c *fleet) hasStarted() bool {
	found, _ := filepath.Glob(c.path("[wlsr]*-*-n*"))
	return len(found) == files && smallest(found) > 0
}

// launch starts a process of a node. The environment is added to the usual one.
func (c *fleet) launch(i int, env ...string) *fleetProcess {
	c.t.Helper()
	p := &fleetProcess{node: i, start: len(c.all), done: make(chan struct{})}
	var all, links []string
	for j, address := range c.addresses {
		all = append(all, nodeName(j)+"="+address)
		if j != i {
			links = append(links, nodeName(j)+"="+c.links[i][j].listener.Addr().String())
		}
	}
	p.cmd = child.Command(childNode)
	p.cmd.Path = cmp.Or(c.program, p.cmd.Path)
	p.cmd.Env = append(p.cmd.Env,
		variableLinks+"="+strings.Join(links, ","), clusterprocesses.VariableDir+"="+c.dir, clusterprocesses.VariableStart+"="+fmt.Sprint(p.start),
		"TOPOGEN_NODE="+nodeName(i), "TOPOGEN_NODES="+strings.Join(all, ","), "TOPOGEN_ADDRESS="+c.addresses[i], "TOPOGEN_DIR="+c.path("nodes"),
		"TOPOGEN_TRUST_DOMAIN="+domain, "TOPOGEN_TLS_CERT="+c.path(nodeName(i)+".crt"), "TOPOGEN_TLS_KEY="+c.path(nodeName(i)+".key"), "TOPOGEN_TLS_CA="+c.path("ca.crt"))
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.all = append(c.all, p)
	c.nodes[i] = p
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	c.t.Cleanup(func() {
		if c.t.Failed() && c.program != "" { // the stacks show why it does not end
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			select {
			case <-p.done:
			case <-time.After(10 * time.Second):
			}
		}
		_ = p.cmd.Process.Kill() // an error means that it has ended
		<-p.done
		if c.t.Failed() {
			c.t.Logf("%s, start %d: %v\n%s", nodeName(i), p.start, p.err, &p.output)
		}
	})
	return p
}

func (c *fleet) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// nodeDir is the folder of what a node must remember.
func (c *fleet) nodeDir(i int) string { return c.path("nodes", nodeName(i)) }

// connect chooses the addresses of the nodes and makes the links. The listeners stay open
// until the links have addresses of their own.
func (c *fleet) connect() {
	c.addresses = loopback.Addresses(c.t, len(c.nodes))
	c.links = make([][]*link, len(c.nodes))
	for i := range c.nodes {
		c.links[i] = make([]*link, len(c.nodes))
		for j := range c.nodes {
			if i != j {
				c.links[i][j] = newLink(c.t, c.addresses[j])
			}
		}
	}
}

func (c *fleet) certificates() {
	c.ca = c.authority("ca", domain)
	for i := range c.nodes {
		c.issue(c.ca, nodeName(i), certs.ID{TrustDomain: domain, Topology: "clusterprocesses", Node: nodeName(i)})
	}
}

// authority makes an authority, and writes its certificate to a file.
func (c *fleet) authority(file, domain string) *certs.Authority {
	c.t.Helper()
	ca, err := certs.NewAuthority(domain, time.Now())
	if err == nil {
		err = os.WriteFile(c.path(file+".crt"), ca.Cert, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return ca
}

// issue writes a certificate and its key to files. It returns the environment that selects them.
func (c *fleet) issue(ca *certs.Authority, file string, id certs.ID) (env []string) {
	c.t.Helper()
	pair, err := ca.Issue(id, time.Now(), time.Hour)
	err = errors.Join(err, os.WriteFile(c.path(file+".crt"), pair.Cert, 0o600), os.WriteFile(c.path(file+".key"), pair.Key, 0o600))
	if err != nil {
		c.t.Fatal(err)
	}
	return []string{"TOPOGEN_TLS_CERT=" + c.path(file+".crt"), "TOPOGEN_TLS_KEY=" + c.path(file+".key")}
}

// await waits until a condition holds.
func (c *fleet) await(what string, condition func() bool) {
	c.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(awaitMax); !condition(); <-poll.C {
		if time.Now().After(end) {
			c.t.Fatalf("timeout while waiting for %s", what)
		}
	}
}

// awaitOutput waits until a process has printed a text.
func (c *fleet) awaitOutput(p *fleetProcess, text string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%q of %s, start %d", text, nodeName(p.node), p.start), func() bool { return strings.Contains(p.output.String(), text) })
}

// awaitDead waits until a node believes that another one is dead.
func (c *fleet) awaitDead(by, node int) {
	c.t.Helper()
	c.awaitOutput(c.nodes[by], "cannot be reached node="+nodeName(node)+" state=dead")
}

func smallest(files []string) int64 {
	smallest := int64(1 << 62)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			smallest = min(smallest, info.Size())
		}
	}
	return smallest
}

// handled returns the bytes of the effects at the workers of a process.
func (c *fleet) handled(p *fleetProcess) (sum int64) {
	found, _ := filepath.Glob(c.path(fmt.Sprintf("worker-*-%s-%d", nodeName(p.node), p.cmd.Process.Pid)))
	for _, file := range found {
		if info, err := os.Stat(file); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// awaitEffects waits until each node has handled more.
func (c *fleet) awaitEffects() {
	c.t.Helper()
	for _, p := range c.nodes {
		before := c.handled(p)
		c.await("more effects at "+nodeName(p.node), func() bool { return c.handled(p) > before+1000 })
	}
}

// finish makes the sources end.
func (c *fleet) finish() {
	c.t.Helper()
	if err := os.WriteFile(c.path("finish"), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *fleet) signal(p *fleetProcess, s os.Signal) {
	c.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

func (c *fleet) terminate(i int) { c.signal(c.nodes[i], syscall.SIGTERM) }

// kill ends the process of a node as a crash does.
func (c *fleet) kill(i int) {
	c.t.Helper()
	p := c.nodes[i]
	p.killed = true
	c.signal(p, syscall.SIGKILL)
	_ = c.ended(p) // it is always the signal
}

// hasEnded reports whether a process has ended.
func (p *fleetProcess) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ended waits for the end of a process, and returns its error.
func (c *fleet) ended(p *fleetProcess) error {
	c.t.Helper()
	c.await("the end of "+nodeName(p.node), p.hasEnded)
	return p.err
}

// both calls f with the links between two nodes.
func (c *fleet) both(a, b int, f func(l *link)) {
	f(c.links[a][b])
	f(c.links[b][a])
}
