// Package loopback finds addresses for the nodes of a test.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Addresses returns loopback addresses that were free a moment ago. Their ports are below those
// of outgoing connections. A connection could take a port before its node listens, and one that
// another node dials to that port could connect to itself.
func Addresses(t testing.TB, n int) (list []string) {
	t.Helper()
	const first, end, attempts = 10_000, 32_000, 100
	for tries := 0; len(list) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+rand.IntN(end-first)))
		if err != nil && tries < attempts {
			continue // the port is in use
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		list = append(list, l.Addr().String())
	}
	return list
}
