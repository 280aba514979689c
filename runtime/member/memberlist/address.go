package memberlist

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"strconv"

	"github.com/topogen/topogen/runtime/member"
)

// port is that of all addresses: the library needs one.
const port = 1

// ipOf returns an address for the library: a unique local IPv6 address whose last 15 bytes
// are a hash of the name.
func ipOf(name string) net.IP {
	sum := sha256.Sum256([]byte(name))
	return append(net.IP{0xfd}, sum[:net.IPv6len-1]...)
}

// hostPort returns ipOf and the port, as the library writes them.
func hostPort(name string) string {
	return net.JoinHostPort(ipOf(name).String(), strconv.Itoa(port))
}

// addr is the net.Addr of a node.
type addr struct{ name string }

func (a addr) Network() string { return "topogen" }
func (a addr) String() string  { return hostPort(a.name) }

// Values of the first byte of the meta data for the library.
const (
	metaRuns   = 1
	metaLeaves = 2 // the node ends on purpose: the library does not tell this from a death
)

// appendMeta encodes the meta data for the library: whether the node leaves, its boot id, its
// address and its own meta data.
func appendMeta(b []byte, n *member.Node, leaves bool) []byte {
	if leaves {
		b = append(b, metaLeaves)
	} else {
		b = append(b, metaRuns)
	}
	b = binary.BigEndian.AppendUint64(b, n.Boot)
	b = binary.BigEndian.AppendUint16(b, uint16(len(n.Address)))
	b = append(b, n.Address...)
	return append(b, n.Meta...)
}

func parseMeta(b []byte) (n member.Node, leaves bool, err error) {
	const head = 1 + 8 + 2
	if len(b) < head || len(b) > head+member.AddressMax+member.MetaMax {
		return n, false, errors.New("the meta data of a member have a wrong length")
	}
	n.Boot = binary.BigEndian.Uint64(b[1:])
	end := head + int(binary.BigEndian.Uint16(b[9:]))
	if end > len(b) || end > head+member.AddressMax {
		return n, false, errors.New("the address in the meta data of a member is incomplete")
	}
	n.Address = string(b[head:end])
	if end < len(b) {
		n.Meta = append([]byte(nil), b[end:]...)
	}
	return n, b[0] == metaLeaves, nil
}
