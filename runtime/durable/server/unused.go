package server

import (
	"net"
	"net/http"
	"sync"
)

// unused has the connections that have not sent the header of a request yet. Many clients open
// connections in advance, and [http.Server.Shutdown] waits until such a connection is five seconds
// old. It does not carry out a request whose header arrives in this time, so waiting is of no use.
type unused struct {
	conns sync.Map // from net.Conn to struct{}
}

// note implements the hook ConnState of a [http.Server].
func (u *unused) note(c net.Conn, state http.ConnState) {
	if state == http.StateNew {
		u.conns.Store(c, struct{}{})
	} else {
		u.conns.Delete(c)
	}
}

// close closes the connections that have not sent the header of a request yet.
func (u *unused) close() {
	u.conns.Range(func(c, _ any) bool {
		_ = c.(net.Conn).Close() // the other side may have closed it
		return true
	})
}
