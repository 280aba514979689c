// Package bench compares topogen with what a Go programmer would use instead: channels,
// protoactor-go, watermill's gochannel, xsync's queues and, for the generator, stringer.
// It is a separate module, so that topogen's module does not depend on them.
//
//	go test -bench . -benchtime 200ms      each contender separately
//	go run ./cmd/table                     in turns, written to bench/README.md
//
// Package raft compares replicated state machines with other engines, and package wire
// compares codecs of messages with those of protobuf. Package member compares failure
// detection with hashicorp/memberlist. Package durable compares durable promises with the
// syncs of the disk.
//
// The topologies in folder topologies are generated like a user's; `go generate ./...`
// generates them again.
package bench
