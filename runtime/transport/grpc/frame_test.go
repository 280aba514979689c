package grpc

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/runtime/transport"
)

// recorder is a receiver that records what it receives.
type recorder struct {
	all    []transport.Message
	chunks []chunk
}

func (r *recorder) messages(group uint64, payloads [][]byte) {
	for _, p := range payloads {
		r.all = append(r.all, transport.Message{Group: group, Payload: p})
	}
}

func (r *recorder) chunk(c chunk) error {
	r.chunks = append(r.chunks, c)
	return nil
}

// TestProtobufReadsIt: protobuf's library reads frames and hellos as transport.proto
// defines them.
func TestProtobufReadsIt(t *testing.T) {
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("transport.proto"), Package: proto.String("t"), Syntax: proto.String("proto3")}
	message := func(name string, fields ...*descriptorpb.FieldDescriptorProto) {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: &name, Field: fields})
	}
	field := func(number int32, name string, kind descriptorpb.FieldDescriptorProto_Type, repeated bool, of string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, JsonName: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if repeated {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		if of != "" {
			f.TypeName = proto.String(".t." + of)
		}
		return f
	}
	const (
		text   = descriptorpb.FieldDescriptorProto_TYPE_STRING
		number = descriptorpb.FieldDescriptorProto_TYPE_UINT64
		fixed  = descriptorpb.FieldDescriptorProto_TYPE_FIXED64
		binary = descriptorpb.FieldDescriptorProto_TYPE_BYTES
		inner  = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	)
	message("Hello", field(1, "protocol", descriptorpb.FieldDescriptorProto_TYPE_UINT32, false, ""), field(2, "topology", text, false, ""),
		field(3, "version", text, false, ""), field(4, "trust_domain", text, false, ""), field(5, "node", text, false, ""),
		field(6, "to", text, false, ""), field(7, "incarnation", fixed, false, ""), field(8, "message_bytes_max", number, false, ""),
		field(9, "address", text, false, ""), field(10, "entered", number, false, ""))
	message("Frame", field(1, "messages", inner, true, "Messages"), field(2, "chunk", inner, false, "Chunk"))
	message("Messages", field(1, "group", fixed, false, ""), field(2, "payloads", binary, true, ""))
	message("Chunk", field(1, "group", fixed, false, ""), field(2, "size", number, false, ""), field(3, "offset", number, false, ""), field(4, "data", binary, false, ""))
	descriptor, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name protoreflect.Name, b []byte, want string) {
		t.Helper()
		got, expected := dynamicpb.NewMessage(descriptor.Messages().ByName(name)), dynamicpb.NewMessage(descriptor.Messages().ByName(name))
		if err := proto.Unmarshal(b, got); err != nil {
			t.Fatal(err)
		}
		if err := prototext.Unmarshal([]byte(want), expected); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, expected) || len(got.GetUnknown()) > 0 {
			t.Errorf("%v\nwant %v", got, expected)
		}
	}
	check("Hello", (&hello{1, "bank", "v", "example.org", "n1", "n2", 7, 9, "h:1", 5}).append(nil),
		`protocol: 1 topology: "bank" version: "v" trust_domain: "example.org" node: "n1" to: "n2" incarnation: 7 message_bytes_max: 9 address: "h:1" entered: 5`)
	check("Frame", appendMessages(nil, []transport.Message{{Group: 3, Payload: []byte("a")}, {Group: 3}, {Group: 4, Payload: []byte("b")}}),
		`messages {group: 3 payloads: "a" payloads: ""} messages {group: 4 payloads: "b"}`)
	check("Frame", append(appendChunkHead(nil, &chunk{5, 300, 200, []byte("hello")}), "hello"...),
		`chunk {group: 5 size: 300 offset: 200 data: "hello"}`)
}

func FuzzReadFrame(f *testing.F) {
	f.Add(appendMessages(nil, []transport.Message{number(1), number(2), {Group: 1}}))
	f.Add(append(appendChunkHead(nil, &chunk{group: 1, size: 5, data: []byte("he")}), "he"...))
	f.Add([]byte{tagMessages, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var got recorder
		var err error
		allocated.Within(t, 100*len(b), func() { err = readFrame(b, &got) })
		if err != nil {
			return
		}
		size := 0
		for _, m := range got.all {
			size += len(m.Payload)
		}
		for _, c := range got.chunks {
			size += len(c.data)
		}
		if size > len(b) || len(got.all) > frameMessagesMax {
			t.Errorf("%d bytes in %d messages from a frame of %d bytes", size, len(got.all), len(b))
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add((&hello{protocol: 1, topology: "bank", node: "n1", to: "n2", incarnation: 7, messageBytesMax: 1 << 20}).append(nil))
	f.Add((&hello{protocol: 1, node: "n1", address: "[2001:db8::1]:7101"}).append(nil))
	f.Add((&hello{protocol: 1, node: "n1", address: "n1.example.org:7101"}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		metadata := map[string][]string{helloKey: {string(b)}}
		var h hello
		var err error
		allocated.Within(t, 16*len(b), func() { h, err = readHello(metadata) })
		if err != nil {
			return
		}
		again, err := readHello(h.metadata())
		if err != nil || again != h {
			t.Errorf("%+v was decoded as %+v, %v", h, again, err)
		}
	})
}
