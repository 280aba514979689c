package grpc

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/transport"
)

// checkAddress checks the address that a node announces: host:port, or :port. The empty
// string announces nothing. Other nodes dial the address, so it must be a name or an IP
// address of one host, with the same meaning for all of them.
func checkAddress(address string) error {
	if address == "" {
		return nil
	}
	if len(address) > transport.AddressBytesMax {
		return fmt.Errorf("it must have at most %d bytes, got %d", transport.AddressBytesMax, len(address))
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("it must be host:port, got %q", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("its port must be 1 to 65535, got %q", port)
	}
	if host == "" || isHostName(host) {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("its host must be a DNS name or the IP address of one host, got %q", host)
	}
	return nil
}

// isHostName reports whether a string can be a DNS name that is not an IP address.
func isHostName(host string) bool {
	letters := false
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for _, c := range []byte(label) {
			switch {
			case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
				letters = true
			case c >= '0' && c <= '9', c == '-', c == '_':
			default:
				return false
			}
		}
	}
	return letters && len(host) <= 253
}

// advertised returns the address that a node announces: the configured host, or no host
// if it listens on all of its addresses.
func advertised(configured string, listener net.Addr) string {
	host, _, err := net.SplitHostPort(configured)
	tcp, ok := listener.(*net.TCPAddr)
	if err != nil || !ok {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = ""
	}
	address := net.JoinHostPort(host, strconv.Itoa(tcp.Port)) // the actual port, if the configured one is 0
	if checkAddress(address) != nil {
		return "" // such as an address with a zone, which is valid only on this host
	}
	return address
}

// dialAddress returns the address to dial a node that has sent this hello from the
// address from.
func (h *hello) dialAddress(from net.Addr) string {
	host, port, err := net.SplitHostPort(h.address)
	if err != nil || host != "" {
		return h.address
	}
	tcp, ok := from.(*net.TCPAddr)
	if !ok || tcp.IP == nil {
		return ""
	}
	return net.JoinHostPort(tcp.IP.String(), port) // without the zone, which is valid only on this host
}
