// Package bench measures topogen beside what a Go programmer would use instead:
// channels, protoactor-go, watermill's gochannel, xsync's queues and, for the
// generator, stringer. It is a module of its own, so that none of them is in
// topogen's.
//
//	go test -bench . -benchtime 200ms      each by itself
//	go run ./cmd/table                     interleaved, into docs/explanation/speed.md
//
// Package raft below measures replicated state machines beside other engines, and
// package wire messages beside protobuf's.
//
// Topologies below topologies/ are generated as a user's would be; `go generate
// ./...` makes them anew.
package bench
