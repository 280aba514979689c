package raft_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/topogen/topogen/runtime/cluster/table"
	tableraft "github.com/topogen/topogen/runtime/cluster/table/raft"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/raft/wal"
)

// disk is a raft.Disk on a simulated disk.
type disk struct {
	*wal.Disk
	record raft.Record
	made   bool
}

func (d *disk) Record() (raft.Record, error)  { return d.record, nil }
func (d *disk) SetRecord(r raft.Record) error { d.record = r; return nil }
func (d *disk) HasLog() (bool, error)         { return d.made, nil }
func (d *disk) Close() error                  { return nil }
func (d *disk) RemoveLog() error              { d.Disk, d.made = wal.NewDisk(1), false; return nil }

func (d *disk) Open(id wal.Identity) (wal.Log, wal.Stored, error) {
	log, stored, err := d.Disk.Open(id, wal.Options{})
	d.made = d.made || err == nil
	return log, stored, err
}

// withDisks gives each node of a cluster a simulated disk.
func (c *cluster) withDisks() map[string]*disk {
	disks := map[string]*disk{}
	for name := range first {
		disks[name] = &disk{Disk: wal.NewDisk(uint64(len(disks)))}
	}
	c.change = func(config *tableraft.Config) { config.Disk = disks[config.Node] }
	return disks
}

// move moves containers until ctx ends or a number of them was moved. It proposes at n1.
func move(ctx context.Context, t *testing.T, n *node, first, count int) {
	t.Helper()
	for i := first; i < first+count; i++ {
		if _, err := n.Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: i % 12, Count: 1, Node: []string{"n1", "n2", "n3"}[i%3]}}); err != nil {
			t.Fatal(err)
		}
	}
}

// sameTables checks that all nodes have the table of n1.
func sameTables(ctx context.Context, t *testing.T, nodes map[string]*node) {
	t.Helper()
	for name, n := range nodes {
		if err := n.Sync(ctx); err != nil {
			t.Fatalf("Sync of %s: %v", name, err)
		}
	}
	want := string(nodes["n1"].Replica().Append(nil))
	for name, n := range nodes {
		if err := n.Replica().Wait(ctx, nodes["n1"].Replica().Revision()); err != nil {
			t.Fatal(err)
		}
		if got := string(n.Replica().Append(nil)); got != want {
			t.Errorf("the table of %s differs from the table of n1", name)
		}
	}
}

// TestFullDisk lets a sync of one node fail. Its table ends with the error, the others go
// on, and the node catches up when the disk works again.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		disks := c.withDisks()
		ctx, nodes := c.started(t)
		move(ctx, t, nodes["n1"], 0, 10)
		if err := nodes["n3"].Sync(ctx); err != nil { // its replica must have the plan before its disk is full
			t.Fatal(err)
		}
		disks["n3"].FailSync()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := nodes["n1"]; ctx.Err() == nil && nodes["n3"].Err() == nil; {
				if _, err := n.Txn(ctx, nil, []table.Change{table.Assign{Processor: "counter", First: 0, Count: 1, Node: "n2"}}); err != nil && ctx.Err() == nil {
					t.Errorf("a transaction failed while a minority has a full disk: %v", err)
					return
				}
			}
		}()
		select {
		case <-nodes["n3"].Done():
		case <-ctx.Done():
			t.Fatal("the table of a node whose disk is full still runs")
		}
		<-done
		if err := nodes["n3"].Err(); err == nil {
			t.Error("Err returned no reason")
		}
		if i, _, _ := nodes["n3"].Replica().Processor("counter"); nodes["n3"].Close() == nil {
			t.Error("Close did not return the reason")
		} else if place, _ := nodes["n3"].Replica().Lookup(i, 0); place == nil {
			t.Error("a lookup does not work after the table has ended")
		}
		disks["n3"].Crash() // the failed sync left unsynced records
		nodes["n3"] = c.open(t, c.config("n3"))
		move(ctx, t, nodes["n1"], 0, 10)
		sameTables(ctx, t, nodes)
	})
}

// TestPowerFailure crashes all disks at once, between log and memory: acknowledged
// transactions are there again, and all nodes agree on the others.
func TestPowerFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		disks := c.withDisks()
		ctx, nodes := c.started(t)
		for round := range 3 {
			move(ctx, t, nodes["n1"], 0, 30)
			acknowledged := nodes["n1"].Replica().Revision()
			began, ended := make(chan struct{}), make(chan struct{})
			short, cancel := context.WithCancel(ctx)
			go func() { // these transactions may succeed or fail
				defer close(ended)
				for i := 0; short.Err() == nil; i++ {
					if i == 3 {
						close(began)
					}
					_, _ = nodes["n2"].Txn(short, nil, []table.Change{table.Assign{Processor: "counter", First: 3, Count: 5, Node: "n1"}})
				}
			}()
			<-began
			for _, d := range disks {
				d.Crash()
			}
			cancel()
			<-ended
			for name, n := range nodes {
				_ = n.Close() // its log has failed
				nodes[name] = c.open(t, c.config(name))
			}
			for _, n := range nodes {
				if err := n.Sync(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if got := nodes["n1"].Replica().Revision(); got.Compare(acknowledged) < 0 {
				t.Fatalf("round %d: the table has revision %v after a power failure, but %v was acknowledged", round, got, acknowledged)
			}
			sameTables(ctx, t, nodes)
		}
	})
}
