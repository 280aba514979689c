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

// appendMeta encodes the boot id, the address and the meta data of a node, which are the
// meta data for the library.
func appendMeta(b []byte, n *member.Node) []byte {
	b = binary.BigEndian.AppendUint64(b, n.Boot)
	b = binary.BigEndian.AppendUint16(b, uint16(len(n.Address)))
	b = append(b, n.Address...)
	return append(b, n.Meta...)
}

func parseMeta(b []byte) (n member.Node, err error) {
	const head = 8 + 2
	if len(b) < head || len(b) > head+member.AddressMax+member.MetaMax {
		return n, errors.New("the meta data of a member have a wrong length")
	}
	n.Boot = binary.BigEndian.Uint64(b)
	end := head + int(binary.BigEndian.Uint16(b[8:]))
	if end > len(b) || end > head+member.AddressMax {
		return n, errors.New("the address in the meta data of a member is incomplete")
	}
	n.Address = string(b[head:end])
	if end < len(b) {
		n.Meta = append([]byte(nil), b[end:]...)
	}
	return n, nil
}
