package pool

import (
	"log/slog"
	"time"

	"github.com/topogen/topogen/runtime/piper"
)

// Option overrides a setting of the topology file and of the environment. New returns
// an error for an invalid option.
type Option = piper.Option

// Workers sets the number of goroutines that run the instances. 0 means GOMAXPROCS.
// Environment: TOPOGEN_WORKERS.
func Workers(n int) Option { return piper.Workers(n) }

// Batch sets how many messages an instance may handle in a turn, before the worker runs
// the next instance. Environment: TOPOGEN_BATCH.
func Batch(n int) Option { return piper.Batch(n) }

// Rebalance sets how often the pool reconsiders which worker runs which instance. 0
// means never. Environment: TOPOGEN_REBALANCE.
func Rebalance(d time.Duration) Option { return piper.Rebalance(d) }

// DrainTimeout sets how long Run handles remaining messages after its context has
// ended. Environment: TOPOGEN_DRAIN_TIMEOUT.
func DrainTimeout(d time.Duration) Option { return piper.DrainTimeout(d) }

// CycleLimit sets how many messages one queue within a cycle may hold before Run ends
// with [ErrCycleGrows]. 0 means the larger of 262,144 and 16 times the capacity of the
// queue. If the limit is below the capacity, the capacity is the limit. Environment:
// TOPOGEN_CYCLE_LIMIT.
func CycleLimit(messages int) Option { return piper.CycleLimit(messages) }

// MessageLimit sets the maximum size, in encoded bytes, of a message to the process of
// an isolated instance, and of all messages together that one handler call in that
// process sends. Each message counts 16 bytes more than its encoding. Environment:
// TOPOGEN_MESSAGE_LIMIT, in bytes or with the unit KiB, MiB or GiB.
func MessageLimit(bytes int) Option { return piper.MessageLimit(bytes) }

// Logger sets the logger for warnings of the pool. The default is slog.Default().
func Logger(l *slog.Logger) Option { return piper.Logger(l) }

// Observe sets the observer of the pool. It is called when instances move to another worker,
// fail and are restarted.
func Observe(o Observer) Option { return piper.Observe(o) }

// Record makes Run open a recorder and close it before it returns. It overrides the
// errors section of the topology file. A nil recorder records nothing.
func Record(open func() (Recorder, error)) Option { return piper.Record(open) }

// Node makes this process the node with a name of the topology's cluster. Without a name,
// the process runs the whole topology. Environment: TOPOGEN_NODE.
func Node(name string) Option { return piper.Node(name) }

// NodeAddress sets the host and port where the node listens, in place of the address in
// the topology file. Environment: TOPOGEN_ADDRESS.
func NodeAddress(address string) Option { return piper.NodeAddress(address) }

// NodeDir sets the folder for what the node must remember. Environment: TOPOGEN_DIR.
func NodeDir(dir string) Option { return piper.NodeDir(dir) }

// NodeRoles sets the roles of the node. Environment: TOPOGEN_ROLES, separated by commas.
func NodeRoles(roles ...string) Option { return piper.NodeRoles(roles...) }

// DurableStore sets the folder of the store for durable edges, in place of the folder in
// the topology file. Environment: TOPOGEN_DURABLE_STORE.
func DurableStore(dir string) Option { return piper.DurableStore(dir) }

// DurableListen sets the host and port where programs outside use the store of durable
// edges, in place of the address in the topology file. Environment: TOPOGEN_DURABLE_LISTEN.
func DurableListen(address string) Option { return piper.DurableListen(address) }

// DurableMemory keeps the store of durable edges in memory, for tests. store is a
// *edges.Memory.
func DurableMemory(store any) Option { return piper.DurableMemory(store) }
