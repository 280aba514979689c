// Package raft compares replicated state machines with what a Go programmer would use
// instead: a bare loop around etcd's engine, hashicorp/raft with its raft-wal, and a
// complete etcd server in the process.
//
//	go run ./raft/cmd/table                               ratios; subjects take turns
//	go run ./raft/cmd/table -only sizes -rounds 5         64 bytes to 1 MiB, compared with the bare loop
//	go test ./raft -bench . -benchtime 1s                 each subject separately
//	go test ./raft -bench 'Propose/(bare|topogen-grpc)/64$' -benchmem
//
// Every subject has three replicas in one process, which communicate over loopback and
// write to one disk. A command has 64 bytes, or the size in the table of sizes. Each
// proposer waits until its command is applied on the node where it was proposed, and then
// proposes the next. The state is a counter. topogen and the bare loop take a snapshot
// after 320 MiB of entries, the other subjects take no snapshots. All logs are synced
// before a command is acknowledged. In the table of sizes at most 256 MiB of updates wait
// at the same time, so there are 256 callers with updates of 1 MiB instead of 1,024.
//
// The subjects are:
//
//	topogen-grpc     raft.Machine: typed, with sessions; one entry for all waiting commands
//	topogen-memory   the same without a network
//	bare             etcd's RawNode with the same wal.Log and the same transport/grpc,
//	                 one entry per command, as in the engine's documentation
//	bare-batched     the same, with one entry for all waiting commands
//	hashicorp        hashicorp/raft and raft-wal over TCP
//	etcd             embedded servers, called without their clients' network
//
// The sync rate of a disk drifts, and three replicas compete for few processors. The
// ratios in the tables are therefore medians over rounds in which all subjects take
// turns, and absolute times are context. One disk with three logs is slower for every
// subject than three hosts would be.
package raft
