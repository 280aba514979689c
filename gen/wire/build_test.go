package wire_test

import (
	"go/types"
	"testing"

	"github.com/topogen/topogen/gen/wire"
)

// TestForeignBytes checks that a byte slice with the methods of proto.Message is encoded by them.
func TestForeignBytes(t *testing.T) {
	pkg := types.NewPackage("example.com/shop", "shop")
	reflected := types.NewPackage("google.golang.org/protobuf/reflect/protoreflect", "protoreflect")
	message := types.NewNamed(types.NewTypeName(0, reflected, "Message", nil), types.NewInterfaceType(nil, nil), nil)
	byteType := types.Typ[types.Uint8]
	for name, underlying := range map[string]types.Type{"Slice": types.NewSlice(byteType), "Array": types.NewArray(byteType, 4)} {
		foreign := types.NewNamed(types.NewTypeName(0, pkg, name, nil), underlying, nil)
		self := types.NewVar(0, pkg, "", types.NewPointer(foreign))
		results := types.NewTuple(types.NewVar(0, pkg, "", message))
		foreign.AddMethod(types.NewFunc(0, pkg, "ProtoReflect", types.NewSignatureType(self, nil, nil, nil, results, false)))
		fields := []*types.Var{types.NewField(0, pkg, "Raw", foreign, false)}
		order := types.NewNamed(types.NewTypeName(0, pkg, "Order", nil), types.NewStruct(fields, nil), nil)

		schema, problems := wire.Build(pkg, []wire.Input{{Name: "Order", Type: order}})
		if len(problems) > 0 || schema.Roots[0].Message < 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		elem := schema.Messages[schema.Roots[0].Message].Fields[0].Elem
		if elem.Kind != wire.Nested || schema.Messages[elem.Message].Form != wire.Foreign {
			t.Errorf("%s: the field is %+v", name, elem)
		}
	}
}
