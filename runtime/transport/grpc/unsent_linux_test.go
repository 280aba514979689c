package grpc

import (
	"net"
	"syscall"
	"testing"
)

// TestUnsentBytesAreBounded: on a link of 2 MiB/s, heartbeats arrived 3 s late after an
// update of 16 MiB, most of which was already in the system's buffer.
func TestUnsentBytesAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := new(Config).dialer().dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat) })
	if err != nil || got != unsentBytes {
		t.Errorf("TCP_NOTSENT_LOWAT is %d, %v, want %d", got, err, unsentBytes)
	}
}
