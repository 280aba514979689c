// Package addresses tests the engine etcd of the address table against an embedded etcd,
// and measures it. The embedded etcd has many modules, which must not be in the go.mod of
// the runtime.
package addresses
