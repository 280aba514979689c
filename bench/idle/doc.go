// Package idle measures the memory and the processor time of idle processes: the nodes of a
// cluster with 100,000 instances, with 1,000 instances, and a bare gRPC server with two
// connections. All of it is in test files:
//
//	go test ./idle -bench . -benchtime 1x
//
// All processes run at the same time, and the times are those of the same seconds.
package idle
