//go:build protobuf

package errtop

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/speed"
)

func init() { readByOthers = decodeByOthers }

// exceptionTop is the message of exceptiontop.proto for the protobuf library, which does
// not use the code of this package.
var exceptionTop = describe()

func describe() protoreflect.MessageDescriptor {
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		return &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Type: kind.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
	}
	mapOf := func(name string, value descriptorpb.FieldDescriptorProto_Type) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{
			Name:    &name,
			Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
			Field:   []*descriptorpb.FieldDescriptorProto{field("key", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING), field("value", 2, value)},
		}
	}
	message := &descriptorpb.DescriptorProto{
		Name: proto.String("ExceptionTop"),
		NestedType: []*descriptorpb.DescriptorProto{
			mapOf("ExceptionCountEntry", descriptorpb.FieldDescriptorProto_TYPE_UINT64),
			mapOf("ExceptionLastTimeEntry", descriptorpb.FieldDescriptorProto_TYPE_INT64),
		},
	}
	for i, name := range []string{"exception_count", "exception_last_time"} {
		f := field(name, int32(i+1), descriptorpb.FieldDescriptorProto_TYPE_MESSAGE)
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		f.TypeName = proto.String(".topogen.errtop.ExceptionTop." + message.NestedType[i].GetName())
		message.Field = append(message.Field, f)
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("exceptiontop.proto"), Package: proto.String("topogen.errtop"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{message},
	}, nil)
	if err != nil {
		panic(err)
	}
	return file.Messages().Get(0)
}

// decodeByOthers reads a file with the protobuf library.
func decodeByOthers(b []byte) ([]Entry, error) {
	m := dynamicpb.NewMessage(exceptionTop)
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, err
	}
	records := make(map[string]record)
	m.Get(exceptionTop.Fields().ByNumber(1)).Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		records[key.String()] = record{count: v.Uint()}
		return true
	})
	m.Get(exceptionTop.Fields().ByNumber(2)).Map().Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		records[key.String()] = record{count: records[key.String()].count, last: v.Int()}
		return true
	})
	list := []Entry{}
	for text, r := range records {
		e := Entry{Text: text, Count: r.count}
		if r.last != 0 {
			e.Last = time.UnixMicro(r.last)
		}
		list = append(list, e)
	}
	sortEntries(list)
	return list, nil
}

// tryOthers calls decodeByOthers and recovers a panic: dynamicpb panics if the key of an
// entry occurs again with another type.
func tryOthers(b []byte) (list []Entry, ok bool, err error) {
	defer func() { ok = recover() == nil }()
	list, err = decodeByOthers(b)
	return list, true, err
}

// TestTheProtoFile: exceptiontop.proto matches the description above.
func TestTheProtoFile(t *testing.T) {
	text, err := os.ReadFile("exceptiontop.proto")
	if err != nil {
		t.Fatal(err)
	}
	fields := exceptionTop.Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		line := fmt.Sprintf("map<%v, %v> %s = %d;", f.MapKey().Kind(), f.MapValue().Kind(), f.Name(), f.Number())
		if !strings.Contains(string(text), line) {
			t.Errorf("exceptiontop.proto lacks %s", line)
		}
	}
	if n := strings.Count(string(text), "map<"); n != fields.Len() || !strings.Contains(string(text), "package topogen.errtop;") {
		t.Errorf("exceptiontop.proto has %d maps, want %d", n, fields.Len())
	}
}

func TestOthersReadWhatWeWrite(t *testing.T) {
	speed.Checks(t, 100, 100, 1000)
	texts := rapid.SliceOfDistinct(rapid.String(), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		entries := []Entry{}
		for _, text := range texts.Draw(t, "texts") {
			micros := rapid.Int64().Filter(func(i int64) bool { return i != 0 }).Draw(t, "last")
			entries = append(entries, Entry{text, rapid.Uint64Min(1).Draw(t, "count"), time.UnixMicro(micros)})
		}
		sortEntries(entries)
		b := encode(entries)
		for _, reader := range []func([]byte) ([]Entry, error){decodeByOthers, decodeBytes} {
			if got, err := reader(b); err != nil || !slices.Equal(got, entries) {
				t.Errorf("read %v, %v\nwant %v", got, err, entries)
			}
		}
	})
}

// FuzzDecode: decode never panics, and agrees with the protobuf library on which files
// are valid and on their content.
func FuzzDecode(f *testing.F) {
	f.Add(encode([]Entry{{"a", 1, time.UnixMicro(2)}, {"b\n\tc", math.MaxUint64, time.UnixMicro(-1)}}))
	f.Add([]byte("\x0a\x06\x0a\x01a\x10\x01\x08"))
	f.Add([]byte("\x0b\x13\x14\x0c\x0a\x02\x10\x09"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got []Entry
		var err error
		allocated.Within(t, 100*len(b), func() { got, err = decodeBytes(b) })
		want, ok, other := tryOthers(b)
		if !ok {
			return
		}
		if err != nil && strings.Contains(err.Error(), "more than") {
			return // the library has no such limits
		}
		if (err == nil) != (other == nil) {
			t.Fatalf("got %v, the protobuf library returned %v", err, other)
		}
		if err != nil {
			return
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, the protobuf library read %v", got, want)
		}
		bytes := 0
		for _, e := range got {
			bytes += len(e.Text)
		}
		if bytes > len(b) {
			t.Fatalf("%d bytes of text in a file of %d", bytes, len(b))
		}
		r := newRanking(3)
		r.restore(got, 7)
		r.trim()
		if len(r.seen) != min(len(got), 3) {
			t.Fatalf("%d of %d records were restored", len(r.seen), len(got))
		}
	})
}
