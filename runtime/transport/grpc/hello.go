package grpc

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// helloKey is the key of the metadata that holds a Hello. gRPC encodes values of keys
// that end in -bin in base64.
const helloKey = "topogen-hello-bin"

// hello is the first message of each end.
type hello struct {
	protocol        uint64
	topology        string
	version         string
	trustDomain     string
	node, to        string
	incarnation     uint64 // boot id of the process
	messageBytesMax uint64
	address         string // where the sender listens, host:port, or :port on the host that it connects from; "": not announced
	entered         uint64 // see Process
}

func (h *hello) metadata() metadata.MD { return metadata.Pairs(helloKey, string(h.append(nil))) }

func (h *hello) append(b []byte) []byte {
	b = appendNumber(b, 1, h.protocol)
	b = appendText(b, 2, h.topology)
	b = appendText(b, 3, h.version)
	b = appendText(b, 4, h.trustDomain)
	b = appendText(b, 5, h.node)
	b = appendText(b, 6, h.to)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), h.incarnation)
	b = appendNumber(b, 8, h.messageBytesMax)
	if h.address != "" {
		b = appendText(b, 9, h.address)
	}
	if h.entered > 0 {
		b = appendNumber(b, 10, h.entered)
	}
	return b
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// readHello reads the hello in metadata.
func readHello(md metadata.MD) (h hello, err error) {
	values := md.Get(helloKey)
	if len(values) != 1 {
		return h, fmt.Errorf("the metadata must have 1 value of %[2]s, got %[1]d: the other end is not a node of a topology", len(values), helloKey)
	}
	if len(values[0]) > helloBytesMax {
		return h, fmt.Errorf("a hello must have at most %[2]d bytes, got %[1]d", len(values[0]), helloBytesMax)
	}
	fields := fieldsOf([]byte(values[0]))
	for fields.next() {
		switch fields.number {
		case 1:
			h.protocol = fields.varint()
		case 2:
			h.topology = fields.text()
		case 3:
			h.version = fields.text()
		case 4:
			h.trustDomain = fields.text()
		case 5:
			h.node = fields.text()
		case 6:
			h.to = fields.text()
		case 7:
			h.incarnation = fields.fixed64()
		case 8:
			h.messageBytesMax = fields.varint()
		case 9:
			h.address = fields.text()
		case 10:
			h.entered = fields.varint()
		default:
			fields.skip()
		}
	}
	if fields.err != nil {
		return h, fmt.Errorf("a damaged hello: %w", fields.err)
	}
	if err := checkAddress(h.address); err != nil {
		return h, fmt.Errorf("a hello with an invalid address: %w", err)
	}
	return h, nil
}

// compatible returns an error if two ends cannot talk to each other. Strings of the
// other end are cut, because they may hold anything.
func (h *hello) compatible(other *hello) error {
	switch {
	case other.protocol != h.protocol:
		return fmt.Errorf("it has version %d of the transport's protocol, this node has version %d", other.protocol, h.protocol)
	case other.topology != h.topology:
		return fmt.Errorf("its topology is %.100q, the topology of this node is %q", other.topology, h.topology)
	case other.trustDomain != h.trustDomain:
		return fmt.Errorf("its trust domain is %.100q, the trust domain of this node is %q", other.trustDomain, h.trustDomain)
	case other.version != h.version:
		return fmt.Errorf("its messages have version %.100q, the messages of this node have version %q", other.version, h.version)
	case other.node == "":
		return errors.New("its name is empty")
	case other.to != h.node:
		return fmt.Errorf("it has dialled node %.100q, this node is %q", other.to, h.node)
	case other.node == h.node:
		return fmt.Errorf("it has the name of this node, %q: two processes use the same identity", h.node)
	}
	return nil
}
