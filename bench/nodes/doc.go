// Package nodes compares messages between two processes of a topology with the same
// messages on a bare gRPC stream, and through a NATS server. All of it is in test files:
//
//	go test ./nodes -bench . -benchtime 3s
//
// The receiving end is always a process of its own: the test program starts itself again.
package nodes
