package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// trustDomain is the domain in the certificates of nodes. Their authority exists for one
// run only.
const trustDomain = "localhost"

// fleet is the processes of a run with nodes.
type fleet struct {
	program Program
	streams Streams
	temp    string
	nodes   []*node

	screen   *screen // nil without a terminal
	board    *board
	lines    sync.Mutex // of the output of all nodes
	stopping bool       // the nodes were told to drain
	failed   bool       // a node has failed, so the others are stopped
	code     int        // of the first node that has failed
}

// failedDrainMax is the time for the other nodes to drain after a node has failed. They cannot send
// the messages for this node, so most of them would wait until their drain timeout.
const failedDrainMax = 2 * time.Second

// node is a process.
type node struct {
	*child
	name    string
	address string
	writers []*prefixed
}

// runNodes compiles a program once, and runs a process for each node.
func runNodes(ctx context.Context, p Program, s Streams) (code int, err error) {
	temp, err := os.MkdirTemp("", "topogen-run-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	signals := listen()
	defer signals.close()

	f := &fleet{program: p, streams: s, temp: temp}
	defer f.close()
	if err := f.open(); err != nil {
		return 0, err
	}
	binary, err := f.compile(ctx, signals)
	if err != nil {
		return 0, err
	}
	if err := f.setAddresses(); err != nil {
		return 0, err
	}
	// The processes are signalled when the thread that started them ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f.run(ctx, signals, binary)
}

// open makes the nodes, and the pipes between them and topogen.
func (f *fleet) open() error {
	if f.streams.Status {
		f.screen = &screen{out: f.streams.Err}
		f.board = newBoard(f.program.Name, f.program.Nodes, time.Now())
	}
	for _, name := range f.program.Nodes {
		s := f.streams
		s.In = nil // several processes cannot share an input
		n := &node{child: newChild(f.program, s), name: name}
		f.nodes = append(f.nodes, n)
		if err := n.open(); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) close() {
	for _, n := range f.nodes {
		n.close()
	}
}

// compile compiles the program, and makes the certificates of the nodes. The runtime that
// the program uses makes them, so they have the form that it expects.
func (f *fleet) compile(ctx context.Context, signals *interrupts) (binary string, err error) {
	v := f.nodes[0].values // all nodes have the same
	if binary, err = compile(ctx, signals, v, f.temp, f.streams); err != nil {
		return "", err
	}
	ctx, cancel := signals.until(ctx)
	defer cancel()
	temp := filepath.Join(f.temp, "certs")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return "", err
	}
	l := &layers{temp: temp, replace: make(map[string]string)}
	folder, err := v.command(l, "topogen-run-certs", "certs.go.tmpl")
	if err != nil {
		return "", err
	}
	certs, err := v.build(ctx, l, "./"+filepath.Base(folder), filepath.Join(temp, "make"), f.streams)
	if err != nil {
		return "", err
	}
	make := exec.CommandContext(ctx, certs, append([]string{temp}, f.program.Nodes...)...)
	make.Stderr = f.streams.Err
	if err := make.Run(); err != nil {
		return "", fmt.Errorf("certificates for the nodes: %w", err)
	}
	return binary, os.Remove(certs)
}

// setAddresses finds a free port for each node. The ports are not reserved: if another
// process takes one of them first, that node fails, which ends the run.
func (f *fleet) setAddresses() error {
	for _, n := range f.nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // only at the end, so that all ports are different
		n.address = l.Addr().String()
	}
	return nil
}

// environment returns the environment of a node. It replaces all variables that would make
// it another node.
func (f *fleet) environment(n *node) []string {
	var all []string
	for _, other := range f.nodes {
		all = append(all, other.name+"="+other.address)
	}
	certs := filepath.Join(f.temp, "certs")
	set := []string{
		"TOPOGEN_NODE=" + n.name,
		"TOPOGEN_NODES=" + strings.Join(all, ","),
		"TOPOGEN_ADDRESS=",
		"TOPOGEN_DIR=" + filepath.Join(f.temp, "nodes"),
		"TOPOGEN_TLS_CERT=" + filepath.Join(certs, "node-"+n.name+".crt"),
		"TOPOGEN_TLS_KEY=" + filepath.Join(certs, "node-"+n.name+".key"),
		"TOPOGEN_TLS_CA=" + filepath.Join(certs, "ca.crt"),
		"TOPOGEN_TRUST_DOMAIN=" + trustDomain,
		"TOPOGEN_INSECURE=false",
	}
	environment := slices.Clone(f.streams.Env)
	environment = slices.DeleteFunc(environment, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(environment, set...)
}

// start starts a node.
func (f *fleet) start(i int, binary string, width int) error {
	n := f.nodes[i]
	n.streams.Env = f.environment(n)
	out, err := f.streams.Out, f.streams.Err
	if f.screen != nil {
		err = f.screen
		if f.streams.Shared {
			out = f.screen
		}
	}
	prefix := fmt.Sprintf("%-*s | ", width, n.name)
	stdout := &prefixed{mu: &f.lines, out: out, prefix: prefix}
	stderr := &prefixed{mu: &f.lines, out: err, prefix: prefix}
	if f.streams.Shared {
		stdout = stderr // the same pipe, which keeps the order of both streams
	}
	n.writers = []*prefixed{stdout, stderr}
	n.prepare(binary)
	n.command.Stdout, n.command.Stderr = stdout, stderr
	if err := n.begin(); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	if n.figures != nil {
		go n.reports(func(line string) {
			if text := f.board.report(i, line, time.Now()); text != "" {
				f.screen.set(text)
			}
		})
	}
	return nil
}

// ending is the end of a process.
type ending struct {
	node int
	err  error
}

// run starts the nodes and passes interrupts to them until all have ended.
func (f *fleet) run(ctx context.Context, signals *interrupts, binary string) (code int, err error) {
	width := 0
	for _, n := range f.nodes {
		width = max(width, len(n.name))
	}
	endings := make(chan ending, len(f.nodes))
	running := 0
	for i, n := range f.nodes {
		if err = f.start(i, binary, width); err != nil {
			f.stop(os.Interrupt)
			break
		}
		running++
		go func() { endings <- ending{i, n.command.Wait()} }()
	}
	if err == nil && !f.program.Quiet {
		f.say("%s", f.describe())
	}
	done := ctx.Done()
	var overdue <-chan time.Time
	for running > 0 {
		select {
		case sig := <-signals.signals:
			switch {
			case signals.repeated():
			case f.stopping:
				f.kill()
			default:
				f.stop(sig)
			}
		case <-done:
			done = nil
			f.stop(os.Interrupt)
		case e := <-endings:
			running--
			err = errors.Join(err, f.ended(e))
			if f.failed && overdue == nil {
				overdue = time.After(failedDrainMax)
			}
		case <-overdue:
			f.say("nodes that did not end within %v are killed", failedDrainMax)
			f.kill()
		}
	}
	if f.screen != nil {
		f.screen.close()
	}
	return f.code, err
}

// describe tells how operators reach the nodes.
func (f *fleet) describe() string {
	certs := filepath.Join(f.temp, "certs")
	var all []string
	for _, n := range f.nodes {
		all = append(all, n.name+" at "+n.address)
	}
	return fmt.Sprintf("%s; topoctl cluster status --addr %s --cert %s --key %s --ca %s", strings.Join(all, ", "), f.nodes[0].address,
		filepath.Join(certs, "operator.crt"), filepath.Join(certs, "operator.key"), filepath.Join(certs, "ca.crt"))
}

// say prints a line for the user.
func (f *fleet) say(format string, args ...any) {
	f.lines.Lock()
	defer f.lines.Unlock()
	text := fmt.Appendf(nil, "topogen: "+format+"\n", args...)
	if f.screen != nil {
		_, _ = f.screen.Write(text)
		return
	}
	_, _ = f.streams.Err.Write(text)
}

// stop makes all nodes drain.
func (f *fleet) stop(sig os.Signal) {
	f.stopping = true
	for _, n := range f.nodes {
		if n.command != nil && n.command.Process != nil {
			n.stop(sig)
		}
	}
}

func (f *fleet) kill() {
	for _, n := range f.nodes {
		if n.command != nil && n.command.Process != nil {
			_ = n.command.Process.Kill() // an error means that it has ended
		}
	}
}

// ended handles the end of a process. The first failure ends the others too. A process that
// was killed from outside does not: the other nodes go on without it.
func (f *fleet) ended(e ending) error {
	n := f.nodes[e.node]
	for _, w := range n.writers {
		w.close()
	}
	code, err := n.code(e.err)
	if err != nil {
		f.stop(os.Interrupt)
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	how := "ended"
	sig := killedBy(n.command.ProcessState)
	switch {
	case sig != nil && !f.stopping:
		how = "killed"
		f.say("node %s was killed (%v); the other nodes go on", n.name, sig)
	case sig != nil:
		how = "killed"
	case code != 0:
		how = "failed"
		if !f.stopping {
			f.say("node %s has failed with exit code %d; the other nodes are stopped", n.name, code)
			f.stop(os.Interrupt)
			f.failed = true
		}
	}
	if f.code == 0 {
		f.code = code
	}
	if f.board != nil {
		f.screen.set(f.board.ended(e.node, how, time.Now()))
	}
	return nil
}
