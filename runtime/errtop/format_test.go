package errtop

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"
)

// exceptionTop is the message of exceptiontop.proto, for an implementation of
// protobuf that knows nothing of ours.
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

// decodeByOthers reads a file as any program with the .proto file does.
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

// tryOthers reports whether they come to an end: dynamicpb panics where the key of
// an entry comes again, as another type.
func tryOthers(b []byte) (list []Entry, ok bool, err error) {
	defer func() { ok = recover() == nil }()
	list, err = decodeByOthers(b)
	return list, true, err
}

// TestTheProtoFile: what it says is what the test above describes.
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
	texts := rapid.SliceOfDistinct(rapid.String(), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		entries := []Entry{}
		for _, text := range texts.Draw(t, "texts") {
			micros := rapid.Int64().Filter(func(i int64) bool { return i != 0 }).Draw(t, "last")
			entries = append(entries, Entry{text, rapid.Uint64Min(1).Draw(t, "count"), time.UnixMicro(micros)})
		}
		sortEntries(entries)
		b := encode(entries)
		for _, reader := range []func([]byte) ([]Entry, error){decodeByOthers, decode} {
			if got, err := reader(b); err != nil || !slices.Equal(got, entries) {
				t.Errorf("read %v, %v\nwant %v", got, err, entries)
			}
		}
	})
}

func TestDecode(t *testing.T) {
	whole := encode([]Entry{{"ab", 3, time.UnixMicro(5)}}) // 10 06 …, 8 bytes for each map
	for _, c := range []struct {
		name, file, want string
	}{
		{"nothing", "", ""},
		{"whole", string(whole), `"ab" 3 5`},
		{"maps in the other order", string(whole[8:]) + string(whole[:8]), `"ab" 3 5`},
		{"count alone", string(whole[:8]), `"ab" 3 -`},
		{"time alone", string(whole[8:]), `"ab" 0 5`},
		{"the last of several counts", "\x0a\x03\x0a\x01a" + "\x0a\x05\x0a\x01a\x10\x09" + "\x0a\x05\x0a\x01a\x10\x07", `"a" 7 -`},
		{"a field that we do not know", "\x1a\x02xy" + string(whole), `"ab" 3 5`},
		{"a field that we know, of another type", "\x08\x01" + string(whole), `"ab" 3 5`},
		{"an entry without key", "\x0a\x02\x10\x09", `"" 9 -`},
		{"text", "panic: no such file", "byte 3: cannot parse reserved wire type"},
		{"cut in an entry", string(whole[:14]), "byte 9: unexpected EOF"},
		{"cut after a tag", string(whole[:9]), "byte 9: unexpected EOF"},
		{"a length over all", "\x0a\xff\xff\xff\xff\x0f", "byte 1: unexpected EOF"},
		{"a length that overflows", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "byte 1: variable length integer overflow"},
		{"field 0", string(whole) + "\x02\x00", "byte 16: invalid field number"},
		{"a field beyond all", string(whole) + "\x82\x80\x80\x80\x10\x00", "byte 16: invalid field number"},
		{"an entry that is broken within", "\x0a\x04\x0a\x01a\x10", "byte 6: unexpected EOF"},
		{"not UTF-8", "\x0a\x05\x0a\x01\xff\x10\x01", "byte 3: a text that is not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries, err := decode([]byte(c.file))
			got := ""
			for _, e := range entries {
				last := "-"
				if !e.Last.IsZero() {
					last = fmt.Sprint(e.Last.UnixMicro())
				}
				got += fmt.Sprintf("%q %d %s", e.Text, e.Count, last)
			}
			if err != nil {
				got = strings.TrimPrefix(err.Error(), ErrFormat.Error()+": ")
				if !errors.Is(err, ErrFormat) {
					t.Errorf("%v is not ErrFormat", err)
				}
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if _, other := decodeByOthers([]byte(c.file)); (other == nil) != (err == nil) {
				t.Errorf("others say %v", other)
			}
		})
	}
}

func TestDecodeIsBounded(t *testing.T) {
	var b []byte
	for i := range recordsMax + 1 {
		key := fmt.Sprintf("%05d", i)
		b = protowire.AppendTag(b, fieldCount, protowire.BytesType)
		b = protowire.AppendBytes(b, append([]byte{0x0a, 5}, key...))
	}
	if _, err := decode(b); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "more than 65536 records") {
		t.Errorf("%v", err)
	}
	if entries, err := decode(b[:len(b)-9]); err != nil || len(entries) != recordsMax {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// FuzzDecode: never crashes, and agrees with another implementation on what is a
// file and what it holds.
func FuzzDecode(f *testing.F) {
	f.Add(encode([]Entry{{"a", 1, time.UnixMicro(2)}, {"b\n\tc", math.MaxUint64, time.UnixMicro(-1)}}))
	f.Add([]byte("\x0a\x06\x0a\x01a\x10\x01\x08"))
	f.Add([]byte("\x0b\x13\x14\x0c\x0a\x02\x10\x09"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decode(b)
		want, ok, other := tryOthers(b)
		if !ok {
			return
		}
		if (err == nil) != (other == nil) {
			t.Fatalf("we say %v, others %v", err, other)
		}
		if err != nil {
			return
		}
		if !slices.Equal(got, want) {
			t.Fatalf("we read %v, others %v", got, want)
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
		if len(r.seen) != min(len(got), 3) {
			t.Fatalf("%d records of %d are restored", len(r.seen), len(got))
		}
	})
}
