// Package raft measures replicated state machines beside what a Go programmer
// would use instead: the bare loop around etcd's engine, hashicorp/raft with its
// raft-wal, and a whole etcd server in the process.
//
//	go run ./raft/cmd/table                               ratios: subjects take turns
//	go run ./raft/cmd/table -only sizes -rounds 5         64 bytes to 1 MiB beside the bare loop
//	go test ./raft -bench . -benchtime 1s                 each by itself
//	go test ./raft -bench 'Propose/(bare|topogen-grpc)/64$' -benchmem
//
// Every subject is three replicas in one process, which talk over loopback and
// write to one disk. A command has 64 bytes, or the size that the table of sizes names;
// each proposer waits until its command is applied where it was proposed, and proposes
// the next. The state is a counter. Our machine and the bare loop take snapshots after
// 320 MiB of entries, the others take none. All logs are synced before anything is
// acknowledged. The table of sizes has at most 256 MiB of updates waiting at the same
// time, so 256 callers with updates of 1 MiB in place of 1,024.
//
//	topogen-grpc     raft.Machine: typed, with sessions; one entry for all that wait
//	topogen-memory   the same without a network
//	bare             etcd's RawNode on the same wal.Log and the same transport/grpc,
//	                 one entry a command, as the engine's own documentation has it
//	bare-batched     likewise, with one entry for all commands that wait
//	hashicorp        hashicorp/raft and raft-wal over TCP
//	etcd             embedded servers, called without their clients' network
//
// A disk's sync rate drifts, and three replicas compete for few processors: the
// table's ratios are medians over rounds in which all subjects take turns, and
// times by themselves are context. What one disk does to three logs is harder on
// all of them than three machines would be.
package raft
