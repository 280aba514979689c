package raft

import (
	"errors"

	"github.com/topogen/topogen/runtime/raft/wal"
	"github.com/topogen/topogen/runtime/transport"
)

// openNode opens the disk and the transport of a configuration, and starts a node on
// them. leave releases the transport, which other groups of the process may share.
func openNode(c *Config, machine StateMachine) (node *Node, leave func() error, err error) {
	disk := c.Disk
	if disk == nil {
		if err := prepareFolder(c); err != nil {
			return nil, nil, err
		}
		if disk, err = OpenFolder(c.Dir, wal.Options{Sync: c.Sync, Interval: c.SyncInterval, Logger: c.Logger}); err != nil {
			return nil, nil, err
		}
	}
	leave = func() error { return nil }
	link := c.Transport
	var shared *shared
	if link == nil && len(c.Peers) > 0 {
		if shared, err = listen(c); err != nil {
			return nil, nil, errors.Join(err, disk.Close())
		}
		link, leave = shared, shared.leave
	}
	peers := c.Peers
	if len(peers) == 0 {
		peers = map[string]string{c.Node: ""}
	}
	spread := 0
	if c.Instances > 1 {
		spread = c.Instance + 1
	}
	var now func() int64
	if c.Now != nil {
		now = func() int64 { return c.Now().UnixNano() }
	}
	lostLog, lostRecord := c.lostAdvice()
	node, err = StartNode(NodeConfig{
		Core: CoreConfig{
			Name: c.Node, Peers: peers, Join: c.Join,
			ElectionTicks: c.electionTicks(), HeartbeatTicks: 1,
			Forward: c.Forward, SnapshotEvery: c.SnapshotEvery, Nonce: nonce(),
			LostLog: lostLog, Now: now,
		},
		Topology: c.Topology, GroupName: c.Group, Disk: disk,
		Machine: machine, Transport: link, Group: transport.GroupID(c.Topology, c.Group),
		Led: c.onLeader, Prefer: c.Prefer, Spread: spread, Tick: c.Heartbeat, Logger: c.Logger, ChecksumEvery: c.ChecksumEvery,
		LostRecord: lostRecord,
	})
	if err != nil {
		return nil, nil, errors.Join(c.explainInstances(err), leave())
	}
	if shared != nil {
		node.listener = shared.listener
		end, endCalls := shared.operators.serve(c.Group, node), shared.calls.serve(c.Group, c.Called)
		leave = func() error { end(); endCalls(); return shared.leave() }
	}
	return node, leave, nil
}
