package wire

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/topogen/topogen/bench/wire/pb"
)

// TestProtobufReadsAndWrites: the code of protoc-gen-go reads the output of codecs, and
// codecs read its output.
func TestProtobufReadsAndWrites(t *testing.T) {
	both(t, sampleOrder(), toOrder, fromOrder, appendOrder, consumeOrder, new(pb.Order))
	both(t, &Order{}, toOrder, fromOrder, appendOrder, consumeOrder, new(pb.Order))
	both(t, sampleScan(), toScan, fromScan, appendScan, consumeScan, new(pb.Scan))
}

func both[M any, P proto.Message](t *testing.T, m *M, to func(*M) P, from func(P) *M, write func([]byte, *M) ([]byte, error), read func([]byte, *M) error, theirs P) {
	t.Helper()
	b, err := write(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(b, theirs); err != nil {
		t.Fatal(err)
	}
	if got := from(theirs); !reflect.DeepEqual(got, m) {
		// A codec omits the zero time; protobuf reads it as 1970.
		if o, ok := any(got).(*Order); !ok || o.At.Unix() != 0 {
			t.Errorf("protobuf read\n%+v of\n%+v", got, m)
		}
	}
	if len(theirs.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("protobuf has unknown fields: %x", theirs.ProtoReflect().GetUnknown())
	}
	if b, err = proto.Marshal(to(m)); err != nil {
		t.Fatal(err)
	}
	got := new(M)
	if err := read(b, got); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("from protobuf's bytes: got\n%+v, %v, want\n%+v", got, err, m)
	}
}

// contender writes and reads one message.
type contender struct {
	name  string
	write func([]byte) []byte
	read  func([]byte)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// contenders handle the same message in the same way, except that gob uses one stream for
// all messages, which is its intended use.
func contenders[M any](m *M, theirs proto.Message, write func([]byte, *M) ([]byte, error), read func([]byte, *M) error) []contender {
	return []contender{
		{"topogen", func(b []byte) []byte {
			b, err := write(b, m)
			must(err)
			return b
		}, func(b []byte) { must(read(b, new(M))) }},
		{"protobuf", func(b []byte) []byte {
			b, err := proto.MarshalOptions{}.MarshalAppend(b, theirs)
			must(err)
			return b
		}, func(b []byte) { must(proto.Unmarshal(b, theirs.ProtoReflect().New().Interface())) }},
		gobOf(m),
		{"json", func(b []byte) []byte {
			text, err := json.Marshal(m)
			must(err)
			return append(b, text...)
		}, func(b []byte) { must(json.Unmarshal(b, new(M))) }},
	}
}

func gobOf[M any](m *M) contender {
	var out, in bytes.Buffer
	encoder, decoder := gob.NewEncoder(&out), gob.NewDecoder(&in)
	first := true
	return contender{"gob", func(b []byte) []byte {
		out.Reset()
		must(encoder.Encode(m))
		if first { // the types precede only the first message
			in.Write(out.Bytes())
			must(decoder.Decode(new(M)))
			first = false
			out.Reset()
			must(encoder.Encode(m))
		}
		return append(b, out.Bytes()...)
	}, func(b []byte) {
		in.Write(b)
		must(decoder.Decode(new(M)))
	}}
}

// BenchmarkCodecs writes into a buffer with enough room, and reads into a new message.
func BenchmarkCodecs(b *testing.B) {
	order, scan := sampleOrder(), sampleScan()
	flat := sampleOrder()
	flat.Totals = nil
	for _, message := range []struct {
		name string
		list []contender
	}{
		{"order", contenders(order, toOrder(order), appendOrder, consumeOrder)},
		{"without-map", contenders(flat, toOrder(flat), appendOrder, consumeOrder)},
		{"scan", contenders(scan, toScan(scan), appendScan, consumeScan)},
	} {
		for _, c := range message.list {
			bytes := c.write(nil)
			b.Run(message.name+"/write/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				room := make([]byte, 0, 2*len(bytes))
				for b.Loop() {
					c.write(room)
				}
				b.SetBytes(int64(len(bytes)))
			})
			b.Run(message.name+"/read/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.read(bytes)
				}
				b.SetBytes(int64(len(bytes)))
			})
		}
	}
}
