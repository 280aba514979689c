// Package durable measures durable promises on disk, over HTTP and in the process, as a
// ratio to the number of times that the same disk can sync in the same run.
//
//	go run ./durable/cmd/table                          ratios and goals; subjects take turns
//	go run ./durable/cmd/table -only cycle -rounds 3    a part of it
//	go test ./durable -bench . -benchtime 2s            each subject separately
//
// A client sends a request, waits for its answer, and sends the next one (a closed loop).
// Except at half load, the server, the store and all clients are in one process, and share
// its processors.
// HTTP goes over the loopback device with keep-alive. The clients of "http" write the bytes
// of a request and read those of its response; "http client" uses package client, which
// takes as much time as the server. All stores are synced before an
// operation is answered.
//
//   - create+settle: each client creates a promise and settles it. Each of both is an
//     operation.
//   - cycle: each client creates a promise with a target and registers a listener. A worker
//     receives the message, acquires the task and fulfils it, and the client receives the
//     message that the promise is settled. These are four operations and two messages.
//   - half load: creates arrive at constant intervals, at half of the rate that 64 clients
//     reach in the loop. A process of its own sends them. The latency is the time from the
//     planned arrival, so that a pause of the server counts for every request that had to wait.
//
// The sync rate is that of overwriting 4 KiB in a file of constant size, measured directly
// before and after each run. A commit of the store needs one.
package durable
