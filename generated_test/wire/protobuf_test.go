//go:build protobuf

package wire

import (
	"os"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/wire"
)

// calledOtherwise maps messages of the topology to their names in the .proto, if they differ.
var calledOtherwise = map[string]string{"Text": "Name", "Page": "PageLine2"}

// TestProtobuf checks that another implementation, with the .proto that we print, decodes our
// encodings without unknown fields, and that we decode its encodings. messages.binpb is the
// compiled .proto (bench/wire/make).
func TestProtobuf(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	b, err := os.ReadFile("messages.binpb")
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(b, &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	onlyText = true
	defer func() { onlyText = false }()
	for _, c := range codecs {
		name := c.name
		if other := calledOtherwise[name]; other != "" {
			name = other
		}
		d, err := files.FindDescriptorByName(protoreflect.FullName("messages." + name))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := c.make()
				draw(t, m)
				b, err := c.append(nil, m)
				if err != nil {
					t.Fatal(err)
				}
				theirs := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
				if err := proto.Unmarshal(b, theirs); err != nil {
					t.Fatalf("protobuf cannot read it: %v\n%x", err, b)
				}
				known(t, theirs)
				if b, err = proto.Marshal(theirs); err != nil {
					t.Fatal(err)
				}
				got := c.make()
				if err := c.consume(b, got); err != nil || !reflect.DeepEqual(got, m) {
					t.Fatalf("of protobuf's bytes came %+v, %v, want\n%+v", got, err, m)
				}
			})
		})
	}
}

// known fails for a field that the .proto does not have, at any depth.
func known(t *rapid.T, m protoreflect.Message) {
	if b := m.GetUnknown(); len(b) > 0 && !wire.IsNil(b) {
		t.Fatalf("%s has unknown fields: %x", m.Descriptor().FullName(), b)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { known(t, v.Message()); return true })
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				known(t, v.List().Get(i).Message())
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			known(t, v.Message())
		}
		return true
	})
}
