package spec

import "time"

// Each quantity that a topology file controls has a limit, so that a file from an unknown
// source costs at most seconds and a few hundred megabytes.
const (
	bytesMax        = 4 << 20 // 60,000 edges; the YAML library needs 100 bytes of memory for each
	depthMax        = 64      // a topology needs 6 levels, and the values of with a few more; the functions that visit values recurse
	nodesMax        = 1 << 19 // keys and values as written: 4 MiB of ordinary edges have 420,000
	indicatorsMax   = 1 << 20 // dashes, colons, commas and brackets; an ordinary file of 4 MiB has 720,000
	aliasNodesMax   = 1 << 17 // keys and values that aliases and merge keys repeat; stops alias bombs
	processorsMax   = 1 << 14 // 16 times the largest topology in the benchmarks
	edgesMax        = 1 << 16 // an edge index fits 16 bits
	everyMin        = time.Microsecond
	machinesMax     = 1 << 10               // instances with a log; each has a segment of 16 MiB and goroutines
	heartbeatMin    = 10 * time.Millisecond // a shorter time is about as long as the sync of a disk
	syncIntervalMin = time.Millisecond      // faster than disks sync
	peersMax        = 9                     // more peers make each commit slower, and 9 already tolerate the loss of 4
	electionFactor  = 5                     // fewest heartbeats in an election timeout, so that one late heartbeat starts no election
	dumpEveryMin    = time.Millisecond      // faster than disks sync
	timeoutMin      = time.Millisecond      // a timeout may be tens of milliseconds late
	memoryMin       = 16 << 20              // a Go program with a pool needs 10 MiB
	memoryMax       = 1 << 50               // more than any host has
	messageLimitMin = 64 << 10              // bytes; an error would be larger than a smaller message
	messageLimitMax = 1 << 30               // bytes; sizes in frames of the runtime have 31 bits
	findingsMax     = 1000                  // a user fixes the first ones and runs topogen again; one last finding counts the rest
	nameMax         = 100                   // characters; file names and identifiers contain names
	typeMax         = 1000                  // characters of a Go type expression, or of a field path
	addressMax      = 259                   // bytes of the address of a node: a DNS name of 253, a colon and a port
	typeDepthMax    = 32                    // nesting of a Go type expression
	arrayMax        = 1 << 30               // length of an array in a Go type expression
	nodesOfCluster  = 1 << 10               // first members; the largest simulation has 1,000
	nodesOfRaft     = 63                    // first members that vote; table/raft has at most 64 nodes, and an empty disk needs one of them for a moment
	placedMax       = 1 << 12               // processors in an address table; each takes part in every change of the plan
	placedInstances = 1 << 20               // instances in an address table; 8 bytes each on every node
	memberTimeMax   = time.Hour             // a longer time of failure detection is a mistake, such as a wrong unit
	leaseMin        = time.Second           // a shorter lease ends when a process pauses, for example for its garbage
	rateMax         = 1_000_000             // executions in the time of a rate; a store syncs less often
	millisecondsMin = 50                    // a larger number without a unit probably means milliseconds
	similarStepsMax = 1 << 24               // steps of the search for similar names, in Parse and again in package bind; about 0.1 s
)

// The defaults of keys. A test compares them with the schema.
const (
	defaultOutput       = "topology_gen.go"
	defaultInstances    = 1
	defaultCapacity     = 1024
	defaultBatch        = 256
	defaultRebalance    = 5 * time.Second
	defaultDrainTimeout = 10 * time.Second
	defaultTop          = 1000
	defaultKeep         = 10 * time.Minute
	defaultDumpEvery    = time.Second
	formatVersion       = 1

	defaultElectionTimeout = time.Second
	defaultHeartbeat       = 100 * time.Millisecond
	defaultSyncInterval    = 10 * time.Millisecond
	defaultSnapshotEvery   = 100_000

	defaultHealthCheckInterval = 5 * time.Second
	defaultIntensity           = 1               // as in Erlang/OTP
	defaultAttempts            = 3               // at a message, with then: retry or isolation: process
	defaultPeriod              = 5 * time.Second // as in Erlang/OTP
	defaultShutdown            = 5 * time.Second // as in Erlang/OTP

	defaultProfile       = "lan"
	defaultDetector      = "swim"
	defaultResendTimeout = 30 * time.Second
	defaultResendMin     = 50 * time.Millisecond
	defaultResendMax     = 2 * time.Second
	defaultNeighborhood  = 32

	defaultLease = 30 * time.Second
)
