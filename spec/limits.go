package spec

import "time"

// Everything that a topology file can make large has a limit, so that a file
// from a stranger costs at most seconds and a few hundred megabytes.
const (
	bytesMax        = 4 << 20 // 60,000 edges; the YAML library needs 100 bytes of memory for each
	depthMax        = 64      // a topology needs 6, configuration under with some more; every walk recurses
	nodesMax        = 1 << 19 // keys and values as written: 4 MiB of ordinary edges have 420,000
	indicatorsMax   = 1 << 20 // dashes, colons, commas and brackets: an ordinary file of 4 MiB has 720,000
	aliasNodesMax   = 1 << 17 // keys and values that aliases and merge keys repeat: stops alias bombs
	processorsMax   = 1 << 14 // 16 times the largest topology that is measured
	edgesMax        = 1 << 16 // edge indices fit 16 bits
	instancesMax    = 1 << 20 // of one processor; a pair of instances has a queue
	capacityMax     = 1 << 24 // messages in one queue: at 64 bytes each, 1 GiB
	cycleLimitMax   = 1 << 30 // messages in one queue of a cycle: at 64 bytes each, 64 GiB
	workersMax      = 1 << 12 // more threads than any machine has processors
	batchMax        = 1 << 16 // a longer batch starves the other queues of a worker
	everyMin        = time.Microsecond
	topMax          = 1 << 12               // records of errors: keeps their file below 70 MB
	machinesMax     = 1 << 10               // instances of a machine with a log: each has a segment of 16 MiB and goroutines
	heartbeatMin    = 10 * time.Millisecond // less is of the order of a sync of a disk
	syncIntervalMin = time.Millisecond      // faster than disks sync
	peersMax        = 9                     // more make each commit slower and lose no more nodes than anybody loses at once
	electionFactor  = 5                     // heartbeats in an election timeout at least: one that is late unseats nobody
	dumpEveryMin    = time.Millisecond      // faster than disks sync
	timeoutMin      = time.Millisecond      // the lateness of a timeout is tens of them
	restartsMax     = 1_000_000             // of restarts, attempts and intensities: more is unlimited
	memoryMin       = 16 << 20              // a Go program with a pool needs 10 MiB
	memoryMax       = 1 << 50               // more than any machine has
	messageLimitMin = 64 << 10              // bytes: below it an error would be larger than a message
	messageLimitMax = 1 << 30               // bytes: sizes in frames of the runtime are 31 bits
	findingsMax     = 1000                  // a reader needs no more; the message counts the others
	nameMax         = 100                   // characters: names of files and identifiers are made from names
	typeMax         = 1000                  // bytes of a Go type expression
	typeDepthMax    = 32                    // nesting of a Go type expression
	arrayMax        = 1 << 30               // length of an array in a Go type expression
	millisecondsMin = 50                    // of numbers where a duration belongs
	similarStepsMax = 1 << 24               // steps that looking for similar names may take for one topology, in Parse and again in Go: 0.1 s
)

// What a key has when the file leaves it out. The schema says the same.
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
	defaultAttempts            = 3               // at a message, with retry and in a process
	defaultPeriod              = 5 * time.Second // as in Erlang/OTP
	defaultShutdown            = 5 * time.Second // as in Erlang/OTP
)
