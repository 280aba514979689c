package pairs

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/topogen/topogen/runtime/fsm"
	"github.com/topogen/topogen/runtime/raft"
	"github.com/topogen/topogen/runtime/transport"
)

// Member is a node of a group that replicates a state machine. The topology of a run is the node n1,
// and the nodes n2 and n3 are members without a topology.
type Member interface {
	Start(context.Context, fsm.Host) error
	TransferLeader(ctx context.Context, to string) error
	Close() error
}

// OpenMember makes a node, and a function that reads its state.
type OpenMember func(node string) (Member, func(context.Context) (map[int]int, error), error)

// network connects the nodes of a group in memory.
var network struct {
	*transport.Memory
	mu    sync.Mutex
	links map[string]transport.Transport
}

func newNetwork() {
	network.Memory, network.links = transport.NewMemory(transport.MemoryOptions{}), make(map[string]transport.Transport)
}

// Join connects a node to the network in place of an earlier node with this name.
func Join(node string) func(*raft.Config) {
	return func(c *raft.Config) {
		leave(node)
		link, err := network.Join(node)
		if err != nil {
			panic(err)
		}
		network.mu.Lock()
		defer network.mu.Unlock()
		network.links[node] = link
		c.Node, c.Transport, c.Logger = node, link, slog.New(slog.DiscardHandler)
	}
}

func leave(node string) {
	network.mu.Lock()
	defer network.mu.Unlock()
	if link := network.links[node]; link != nil {
		_ = link.Close()
		delete(network.links, node)
	}
}

// group are nodes without a topology.
type group struct {
	open    OpenMember
	members map[string]Member
}

func newGroup(open OpenMember) *group { return &group{open, make(map[string]Member)} }

func (g *group) start(nodes ...string) error {
	for _, node := range nodes {
		m, _, err := g.open(node)
		if err != nil {
			return err
		}
		g.members[node] = m
		if err := m.Start(context.Background(), nil); err != nil {
			return err
		}
	}
	return nil
}

// stop ends all nodes. The failure of an update has ended them before.
func (g *group) stop() {
	for node, m := range g.members {
		_ = m.Close()
		leave(node)
	}
}

// disturb waits for due, and then makes n2 the leader, restarts n3, or does both, according to the seed.
func (g *group) disturb(ctx context.Context, due <-chan struct{}, r Run) error {
	select {
	case <-due:
	case <-ctx.Done():
		return nil
	}
	random := rand.New(rand.NewPCG(r.Seed, 2))
	if random.IntN(2) == 0 {
		_ = g.members["n2"].TransferLeader(ctx, "n2") // fails if there is no group yet
	}
	if random.IntN(2) == 0 && !r.Failure.IsHang() { // Close waits for an update that hangs
		_ = g.members["n3"].Close()
		return g.start("n3")
	}
	return nil
}

// runBeside calls run, and disturbs the group after some events.
func (g *group) runBeside(r Run, run func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	due, ended := make(chan struct{}), make(chan error)
	after := 1 + rand.New(rand.NewPCG(r.Seed, 3)).Int64N(4*messages)
	onEvent = append(onEvent, func(n int64) {
		if n == after {
			close(due)
		}
	})
	go func() { ended <- g.disturb(ctx, due, r) }()
	err := run()
	cancel()
	return errors.Join(err, <-ended)
}

// recoveryTime is longer than an election.
const recoveryTime = time.Minute

// RecoverGroup starts all nodes of a group again, and returns the state after all updates in the log.
func RecoverGroup(open OpenMember) (seen map[int]int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), recoveryTime)
	defer cancel()
	newNetwork()
	g := newGroup(open)
	defer g.stop()
	m, state, err := open("n1")
	if err != nil {
		return nil, err
	}
	g.members["n1"] = m
	if err := errors.Join(m.Start(ctx, nil), g.start("n2", "n3")); err != nil {
		return nil, err
	}
	return state(ctx)
}
