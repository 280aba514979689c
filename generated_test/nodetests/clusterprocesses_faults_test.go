package nodetests_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/internal/test/speed"
)

// awaitAlive waits until a node handles messages again.
func (c *fleet) awaitAlive(i int) {
	c.t.Helper()
	p := c.nodes[i]
	before := c.handled(p)
	c.await("effects at "+nodeName(i), func() bool { return c.handled(p) > before })
}

// clear empties the folder of a node.
func (c *fleet) clear(i int) {
	c.t.Helper()
	if err := os.RemoveAll(c.nodeDir(i)); err != nil {
		c.t.Fatal(err)
	}
}

// TestClusterProcessesKills kills processes under load with SIGKILL and starts them again. The messages of
// the other processes reach the next process under the name, see checkAll.
func TestClusterProcessesKills(t *testing.T) {
	t.Parallel()
	c := start(t)
	for round := range speed.Pick(t, 0, 3, 60) {
		one, two := round%fleetNodes, (round+1)%fleetNodes
		switch round % 3 {
		case 0: // the next process starts at once, before any node believes that the first is dead
			c.kill(one)
			c.launch(one)
		case 1: // it starts after all others have noticed the death
			c.kill(one)
			for i := range fleetNodes {
				if i != one {
					c.awaitDead(i, one)
				}
			}
			c.launch(one)
		default: // two nodes, so that the others have no majority
			c.kill(one)
			c.kill(two)
			c.awaitDead((round+2)%fleetNodes, one)
			c.launch(one)
			c.launch(two)
		}
		c.awaitEffects()
	}
	c.finish()
	c.checkAll()
}

// TestClusterProcessesAllAreKilled kills all processes at once. The next ones find the address table on
// their disks and run the same instances.
func TestClusterProcessesAllAreKilled(t *testing.T) {
	t.Parallel()
	c := start(t)
	for i := range fleetNodes {
		c.kill(i)
	}
	for i := range fleetNodes {
		c.launch(i)
	}
	for i := range fleetNodes {
		c.awaitAlive(i)
	}
	found, _ := filepath.Glob(c.path("worker-*-*-*"))
	places := map[string]string{}
	for _, file := range found {
		part := strings.Split(filepath.Base(file), "-")
		if before := places[part[1]]; before != "" && before != part[2] {
			t.Errorf("worker %s was on %s and is on %s", part[1], before, part[2])
		}
		places[part[1]] = part[2]
	}
	c.finish()
	c.checkAll()
}

// TestClusterProcessesEmptyDisk: a process that returns under its name without the files of the former one
// gets the address table from the others, and the messages that wait for it.
func TestClusterProcessesEmptyDisk(t *testing.T) {
	t.Parallel()
	c := start(t)
	const one = 1
	c.kill(one)
	c.clear(one)
	c.launch(one)
	c.awaitEffects()
	c.finish()
	c.checkAll()
}

// TestClusterProcessesNewAddress starts the next process of a node at another address. The others find it in
// the address table: their messages that wait go there.
func TestClusterProcessesNewAddress(t *testing.T) {
	t.Parallel()
	unlinked := variableLinks + "=" + direct
	c := start(t, unlinked)
	const one = 3
	c.kill(one)
	c.launch(one, unlinked, "TOPOGEN_ADDRESS="+loopback.Addresses(c.t, 1)[0])
	c.awaitEffects()
	c.finish()
	c.checkAll()
}

// TestClusterProcessesOldDisk: a process that returns with the files of an earlier moment ends at once and
// says why, because its group of the address table has relied on what it had saved since
// then. With an empty folder it returns.
func TestClusterProcessesOldDisk(t *testing.T) {
	t.Parallel()
	c := start(t)
	const one, other = 1, 3
	c.kill(one)
	old := c.path("old")
	if err := os.CopyFS(old, os.DirFS(c.nodeDir(one))); err != nil {
		t.Fatal(err)
	}
	c.kill(other)
	joined := c.launch(other) // its start changes the table, so another node leads from now on
	c.await("effects at the other node", func() bool { return c.handled(joined) > 0 })
	c.launch(one) // its start also changes the table, and the leader knows what this node has saved
	c.awaitEffects()
	c.kill(one)
	c.clear(one)
	if err := os.CopyFS(c.nodeDir(one), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	p := c.launch(one)
	p.killed = true // it has no figures
	if err := c.ended(p); err == nil {
		t.Error("the process with old files has ended without an error")
	}
	c.awaitOutput(p, "shorter than what the node has acknowledged")
	c.clear(one)
	c.launch(one)
	c.awaitEffects()
	c.finish()
	c.checkAll()
}

// TestClusterProcessesOneDiskTwice: a second process with the folder of a running process ends at once and says
// why. The first one is not disturbed.
func TestClusterProcessesOneDiskTwice(t *testing.T) {
	t.Parallel()
	c := start(t)
	const one = 2
	first := c.nodes[one]
	second := c.launch(one, "TOPOGEN_ADDRESS="+loopback.Addresses(c.t, 1)[0])
	second.killed = true // it has no figures
	if err := c.ended(second); err == nil {
		t.Error("the second process has ended without an error")
	}
	c.awaitOutput(second, "is in use by another process")
	c.nodes[one] = first
	c.awaitEffects()
	c.finish()
	c.checkAll()
}

// TestClusterProcessesOneNameTwice: while a process of a node is connected, another one with its name and a
// folder of its own is refused. Both ends log it, and no message goes to the second process.
func TestClusterProcessesOneNameTwice(t *testing.T) {
	t.Parallel()
	c := start(t)
	const one = 2
	first := c.nodes[one]
	second := c.launch(one, "TOPOGEN_ADDRESS="+loopback.Addresses(c.t, 1)[0], "TOPOGEN_DIR="+c.path("elsewhere"))
	c.nodes[one] = first
	c.awaitOutput(second, "two processes use the same identity")
	c.awaitOutput(c.nodes[0], "two processes use the same identity")
	c.awaitEffects()
	second.killed = true // it never begins to work, so it has no figures
	c.signal(second, syscall.SIGKILL)
	if n := c.handled(second); n > 0 {
		t.Errorf("the second process has handled messages: %d bytes of effects", n)
	}
	c.awaitEffects()
	c.finish()
	c.checkAll()
}
