package grpc

import "syscall"

// tcpNotSentLowat is Linux's TCP_NOTSENT_LOWAT, which is missing in package syscall.
const tcpNotSentLowat = 25

// limitUnsent limits the unsent data of a connection in the system. Urgent messages
// overtake messages that are queued in this process, but not data that was written to
// the connection. Without the limit this would be up to 4 MiB.
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
