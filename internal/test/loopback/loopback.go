// Package loopback finds addresses for the nodes of a test.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Addresses returns loopback addresses that were free a moment ago. Their ports are below the
// ports that the system gives to outgoing connections. Otherwise an outgoing connection of any
// program could take the port of a node before the node listens, and the connection of a node
// that dials this port could connect to itself.
func Addresses(t testing.TB, n int) []string {
	t.Helper()
	list, err := Find(n)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Find is Addresses for a caller without a testing.TB.
func Find(n int) (list []string, err error) {
	const first, end, attempts = 10_000, 32_000, 100
	for tries := 0; len(list) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+rand.IntN(end-first)))
		if err != nil && tries < attempts {
			continue // the port is in use
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		list = append(list, l.Addr().String())
	}
	return list, nil
}
