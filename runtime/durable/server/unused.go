package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// unusedGrace is the time that Close gives a new connection for the header of its first request.
const unusedGrace = 100 * time.Millisecond // a request that was sent when the connection was opened has arrived

// unused has the connections that have not sent a request yet. Many clients open connections in
// advance, and [http.Server.Shutdown] waits until such a connection is five seconds old.
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

// close closes the connections that have not sent a request yet.
func (u *unused) close() {
	u.conns.Range(func(c, _ any) bool {
		_ = c.(net.Conn).Close() // the other side may have closed it
		return true
	})
}
