package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/speed"
)

// duration returns how long a demonstration runs in a test.
func duration(t *testing.T) time.Duration {
	t.Helper()
	return speed.Pick(t, 0, 5*time.Second, time.Minute)
}

// demo returns a cluster in a folder of the test.
func demo(t *testing.T, nodes int, alone bool) *cluster {
	t.Helper()
	c, err := newCluster(t.TempDir(), nodes, alone)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	return c
}

// TestKills kills nodes with SIGKILL under load: no answered transfer is lost or made
// twice, and the history is linearizable. It also does this with one process and its
// log.
func TestKills(t *testing.T) {
	speed.Landing(t)
	for name, o := range map[string]options{
		"leaders":  {nodes: 3, every: 2 * time.Second, down: 300 * time.Millisecond},
		"anybody":  {nodes: 3, every: time.Second, down: 200 * time.Millisecond, any: true},
		"one disk": {alone: true, every: 2 * time.Second, down: 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			c := demo(t, o.nodes, o.alone)
			o.runFor, o.clients = duration(t), 3
			w, err := watchCluster(t.Context(), &screen{out: t.Output()}, c, o)
			if err != nil {
				t.Fatal(err)
			}
			if n := w.load.unknown.Load(); n > 0 {
				t.Errorf("the outcome of %d transfers is unknown", n)
			}
			if w.kills == 0 || len(w.gaps) == 0 && !o.any || w.checker.operations < 100 {
				t.Errorf("%d kills, %d recoveries from the kill of a leader, %d operations", w.kills, len(w.gaps), w.checker.operations)
			}
		})
	}
}

// TestANodeThatEndsByItself: an unexpected end of a node ends the demonstration with
// the reason.
func TestANodeThatEndsByItself(t *testing.T) {
	speed.Landing(t)
	c := demo(t, 1, true)
	go func() {
		for c.nodes[0].serves() == "" {
			time.Sleep(time.Millisecond)
		}
		_ = c.nodes[0].process.Process.Kill() // without the cluster
	}()
	_, err := watchCluster(t.Context(), &screen{out: t.Output()}, c, options{alone: true, runFor: time.Minute, clients: 1})
	if err == nil {
		t.Error("the end of the node was not noticed")
	}
}

// TestAFolderOfAnotherBank: the number of nodes in a folder cannot change.
func TestAFolderOfAnotherBank(t *testing.T) {
	dir := t.TempDir()
	first, err := newCluster(dir, 3, false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := newCluster(dir, 3, false)
	if err != nil || strings.Join(again.nodes[1].environ, " ") != strings.Join(first.nodes[1].environ, " ") {
		t.Errorf("the addresses changed: %v, %v", again, err)
	}
	if _, err := newCluster(dir, 5, false); err == nil {
		t.Error("the number of nodes changed to five")
	}
}

// TestNothingIsLeftBehind: after an interrupt no folder and no process remains. After
// the program was killed, no process remains.
func TestNothingIsLeftBehind(t *testing.T) {
	speed.Landing(t)
	for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
		executable, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		var out strings.Builder
		p := exec.Command(executable, "-kill", "300ms", "-down", "100ms", "-clients", "1")
		p.Env = append(os.Environ(), "TMPDIR="+dir)
		stdout, err := p.StdoutPipe()
		if err == nil {
			err = p.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		var addresses []string
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			fmt.Fprintln(&out, lines.Text())
			if addresses == nil && strings.HasSuffix(lines.Text(), "is back") {
				addresses = addressesIn(dir)
				if err := p.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
		}
		err = p.Wait()
		if len(addresses) != 3 {
			t.Fatalf("nodes at %v, %v:\n%s", addresses, err, out.String())
		}
		if signal == os.Interrupt {
			if list, _ := os.ReadDir(dir); err != nil || len(list) > 0 || !strings.Contains(out.String(), ": linearizable") {
				t.Errorf("the program ended with %v, left %v, and printed:\n%s", err, list, out.String())
			}
		}
		for _, a := range addresses {
			for listens(a) {
				if signal == os.Interrupt {
					t.Fatalf("a process still listens on %s", a)
				}
				time.Sleep(10 * time.Millisecond) // the process notices the end of its parent
			}
		}
	}
}

// addressesIn returns the addresses of the nodes of a bank in a folder below dir.
func addressesIn(dir string) (list []string) {
	files, _ := filepath.Glob(filepath.Join(dir, "bank*", "peers"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for pair := range strings.SplitSeq(string(text), ",") {
			_, address, _ := strings.Cut(pair, "=")
			list = append(list, address)
		}
	}
	return list
}

func listens(address string) bool {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// logsHold returns how often a text is in the logs of the nodes: the minimum and the
// maximum.
func logsHold(t *testing.T, c *cluster, text string) (least, most int) {
	t.Helper()
	for i, n := range c.nodes {
		b, err := os.ReadFile(c.logOf(n))
		if err != nil {
			t.Fatal(err)
		}
		count := bytes.Count(b, []byte(text))
		if most = max(most, count); i == 0 || count < least {
			least = count
		}
	}
	return least, most
}

// await waits for a condition until ctx ends.
func await(ctx context.Context, what string, met func() bool) error {
	for !met() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("no %s: %w", what, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
