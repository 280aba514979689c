// Package etcd keeps the address table of a cluster in an existing etcd cluster. It is the
// engine of `addresses: etcd`.
//
//	t, err := etcd.Open(etcd.Config{Endpoints: []string{"https://10.0.0.9:2379"}, Prefix: "/orders", TLS: tls})
//
// # How it works
//
// etcd holds a log of transactions, one key for each entry. A node appends an entry if it
// has applied all earlier entries. Otherwise it applies the newer entries and tries again.
// All nodes watch the log, and apply the
// entries to the same state machine as the other engines. So a transaction may change any
// number of containers, although etcd limits a request to 128 operations and 1.5 MiB.
//
// After 256 entries, the node that appended the last one writes a snapshot in parts of
// 512 KiB, and deletes the entries that it contains. A node that joins reads the newest
// snapshot and the entries after it, all at one revision of etcd, and then watches from
// the next revision. If etcd has compacted that revision in the meantime, the node begins
// again with the newest snapshot.
//
// A lease is a key that belongs to a lease of etcd. Its token is the revision of etcd at
// which the key was created. A guard table.LeaseIs is a condition of the request that
// appends the entry.
//
// # Guarantees
//
// All guarantees of package table, as long as the members of etcd keep theirs. The
// exception is that events and snapshots contain no leases. The Index of a revision is the
// number of the entry in the log, and its Term is 0. Sync reads the number of the last
// entry from a majority of etcd.
//
// If a request is lost, the node repeats it. The entry contains a random number, so that
// the node recognizes an entry that was appended although its answer was lost.
// table.ErrUnknown remains if the node has got this entry in a snapshot, which has no
// outcomes.
//
// # Limits
//
// While etcd cannot be reached, lookups work, and transactions wait until their context
// ends. Each node that proposes at the same time repeats its request when another node was
// faster, so transactions of all nodes together need about one round trip to etcd each.
// The ttl of a lease is rounded up to seconds, and etcd has a minimum of about two
// seconds.
//
// The keys below the prefix must not be changed, and no table may have a prefix below that
// of another one. Stop all nodes before etcd is restored to an older state. A running node
// ends with an error when it finds fewer entries than it has applied. It does not notice
// the restore when the log has become as long again. etcd keeps old revisions until it
// compacts them: set --auto-compaction-retention.
package etcd
