package grpc

import "syscall"

// tcpNotSentLowat is Linux's TCP_NOTSENT_LOWAT, which package syscall lacks.
const tcpNotSentLowat = 25

// limitUnsent bounds what the system holds of a connection's data before it is on
// its way. Urgent messages overtake what waits in this process, and nothing that
// was written to the connection: without the bound that is up to 4 MiB.
func limitUnsent(c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, unsentBytes)
	})
	if err != nil {
		return err
	}
	return failed
}
