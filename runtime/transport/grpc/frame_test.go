package grpc

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/runtime/transport"
)

// told is a receiver that keeps what it gets.
type told struct {
	all    []transport.Message
	chunks []chunk
}

func (r *told) messages(group uint64, payloads [][]byte) {
	for _, p := range payloads {
		r.all = append(r.all, transport.Message{Group: group, Payload: p})
	}
}

func (r *told) chunk(c chunk) error {
	r.chunks = append(r.chunks, c)
	return nil
}

// TestOutboxAndBack: whatever is sent arrives, small messages in order, large ones
// in that of their group, in frames within the limits, whatever breaks in between.
func TestOutboxAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(queueLimits{messages: 5000, bytes: 64 << 20, largeBytes: 8 << 20})
		var count transport.Counters
		o := outbox{queue: q, count: &count}
		o.begin(8 << 20)
		room := &budget{}
		room.give(64 << 20)
		var in *assemblies
		connect := func() {
			if in != nil {
				in.end()
			}
			in = newAssemblies(room, 8<<20, func() { t.Fatal("the budget is used up") })
			o.begin(8 << 20)
		}
		connect()
		small, large := map[uint64][]int{}, map[uint64][]int{} // by group: which are still to come, by their first byte
		sent, arrived := 0, 0
		for i := range rapid.IntRange(1, 10).Draw(t, "bursts") {
			for range rapid.IntRange(0, 700).Draw(t, "messages") {
				m := transport.Message{Group: uint64(rapid.IntRange(0, 2).Draw(t, "group")), Payload: []byte{byte(sent), byte(sent >> 8)}}
				if q.add([]transport.Message{m}) == 0 {
					small[m.Group] = append(small[m.Group], sent&0xffff)
					sent++
				}
			}
			if rapid.Bool().Draw(t, "large") {
				m := transport.Message{Group: uint64(i % 3), Payload: make([]byte, rapid.IntRange(chunkBytes+1, 5*chunkBytes/2).Draw(t, "size"))}
				m.Payload[0] = byte(i)
				if q.add([]transport.Message{m}) == 0 {
					large[m.Group] = append(large[m.Group], i)
					sent++
				}
			}
			for range rapid.IntRange(0, 6).Draw(t, "frames") {
				if !o.load() {
					break
				}
				f := o.frame()
				b := f.buffers.Materialize()
				f.buffers.Free()
				if len(b) > frameBytesMax {
					t.Fatalf("a frame of %d bytes", len(b))
				}
				if rapid.IntRange(0, 30).Draw(t, "breaks") == 0 { // it may have arrived: it is not sent again
					for _, m := range f.messages {
						if len(m.Payload) > 2 {
							large[m.Group] = large[m.Group][1:]
						} else {
							small[m.Group] = small[m.Group][1:]
						}
						arrived++
					}
					o.done(f, false)
					connect()
					continue
				}
				o.done(f, true)
				arrived += take(t, b, in, small, large)
			}
		}
		for o.load() {
			f := o.frame()
			b := f.buffers.Materialize()
			f.buffers.Free()
			o.done(f, true)
			arrived += take(t, b, in, small, large)
		}
		in.end()
		if arrived != sent || q.waiting() != 0 || q.bytes != 0 || q.largeBytes != 0 || o.bytes != 0 || room.left.Load() != 64<<20 {
			t.Fatalf("%d of %d arrived; %+v, %+v, %d bytes left for assembling", arrived, sent, q, o, room.left.Load())
		}
		if c := count.Traffic(); int(c.Sent+c.Dropped) != sent {
			t.Fatalf("%d sent, %+v", sent, c)
		}
	})
}

// take reads a frame and strikes out what has arrived with it.
func take(t *rapid.T, b []byte, in *assemblies, small, large map[uint64][]int) (n int) {
	var got told
	if err := readFrame(b, &got); err != nil {
		t.Fatal(err)
	}
	strike := func(left map[uint64][]int, group uint64, which int) {
		if len(left[group]) == 0 || left[group][0] != which {
			t.Fatalf("group %d: got %d, of %v", group, which, left[group])
		}
		left[group] = left[group][1:]
		n++
	}
	for _, m := range got.all {
		strike(small, m.Group, int(m.Payload[0])|int(m.Payload[1])<<8)
	}
	for _, c := range got.chunks {
		payload, err := in.add(c)
		if err != nil {
			t.Fatal(err)
		}
		if payload != nil {
			strike(large, c.group, int(payload[0]))
		}
	}
	return n
}

// TestDrop: what is let fall is counted and leaves nothing.
func TestDrop(t *testing.T) {
	q := newQueue(queueLimits{messages: 100, bytes: 1 << 20, largeBytes: 64 << 20})
	var count transport.Counters
	o := outbox{queue: q, count: &count}
	o.begin(3 << 20)
	large := transport.Message{Payload: make([]byte, 2<<20)}
	q.add([]transport.Message{number(1), number(2), large, large, {Payload: make([]byte, 4<<20)}})
	if !o.load() {
		t.Fatal("nothing to send")
	}
	if c := count.Traffic(); c.Dropped != 1 {
		t.Errorf("too large for the peer: %+v", c)
	}
	f := o.frame()
	o.done(f, true) // a chunk
	q.add([]transport.Message{number(3), large})
	count.Dropped.Add(uint64(q.close()))
	o.drop()
	if c := count.Traffic(); c.Dropped != 1+4+2 || q.waiting() != 0 || q.bytes != 0 || q.largeBytes != 0 {
		t.Errorf("%+v, %+v", c, q)
	}
	if n := q.add([]transport.Message{number(4)}); n != 1 || o.load() {
		t.Error("a queue that is closed takes something")
	}
	q.open()
	if n := q.add([]transport.Message{number(4)}); n != 0 || !o.load() {
		t.Error("a queue that is open takes nothing")
	}
}

// TestProtobufReadsIt: frames and hellos are what transport.proto says.
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
		field(6, "to", text, false, ""), field(7, "incarnation", fixed, false, ""), field(8, "message_bytes_max", number, false, ""))
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
	check("Hello", (&hello{1, "bank", "v", "example.org", "n1", "n2", 7, 9}).append(nil),
		`protocol: 1 topology: "bank" version: "v" trust_domain: "example.org" node: "n1" to: "n2" incarnation: 7 message_bytes_max: 9`)
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
		var got told
		if readFrame(b, &got) != nil {
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
			t.Errorf("%d bytes in %d messages out of %d bytes", size, len(got.all), len(b))
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add((&hello{protocol: 1, topology: "bank", node: "n1", to: "n2", incarnation: 7, messageBytesMax: 1 << 20}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := helloOf(map[string][]string{helloKey: {string(b)}})
		if err != nil {
			return
		}
		again, err := helloOf(h.metadata())
		if err != nil || again != h {
			t.Errorf("%+v is read as %+v, %v", h, again, err)
		}
	})
}

func TestNotices(t *testing.T) {
	var log logged
	n := newNotices(slog.New(slog.NewTextHandler(&log, nil)))
	now := time.Now()
	for i := range noticesMax {
		if !n.fresh(fmt.Sprint(i), now) || n.fresh(fmt.Sprint(i), now) {
			t.Fatal("not told once")
		}
	}
	if len(n.told) != noticesMax || n.fresh("one more", now) {
		t.Errorf("%d are remembered", len(n.told))
	}
	if now = now.Add(noticeInterval); !n.fresh("one more", now) || !n.fresh("0", now) || n.fresh("0", now) {
		t.Error("after a minute all is news")
	}
	n.tell(slog.LevelInfo, "a", "b")
	n.tell(slog.LevelInfo, "a", "b")
	if !bytes.Contains(log.text.Bytes(), []byte("transport: b")) || log.count("transport: b") != 1 {
		t.Error(&log)
	}
}
