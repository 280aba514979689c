package wire

import (
	"net/netip"
	"reflect"
	"time"

	"github.com/topogen/topogen/generated_test/wire/other"
	"pgregory.net/rapid"
)

// codec has a message's functions for generic tests.
type codec struct {
	name    string
	make    func() any // a pointer to a zero message
	append  func([]byte, any) ([]byte, error)
	consume func([]byte, any) error
}

func of[M any](name string, append func([]byte, *M) ([]byte, error), consume func([]byte, *M) error) codec {
	return codec{
		name: name, make: func() any { return new(M) },
		append:  func(b []byte, m any) ([]byte, error) { return append(b, m.(*M)) },
		consume: func(b []byte, m any) error { return consume(b, m.(*M)) },
	}
}

// codecs are the codecs of all roots.
var codecs = []codec{
	of("Order", appendOrder, consumeOrder),
	of("Scalars", appendScalars, consumeScalars),
	of("Lists", appendLists, consumeLists),
	of("Maps", appendMaps, consumeMaps),
	of("Pointers", appendPointers, consumePointers),
	of("Nested", appendNested, consumeNested),
	of("Node", appendNodeWhole, consumeNodeWhole),
	of("Numbered", appendNumbered, consumeNumbered),
	of("Sparse", appendSparseWhole, consumeSparseWhole),
	of("Text", appendName, consumeName),
	of("Page", appendPageLinePointer, consumePageLinePointer),
	of("Plain", appendPlain, consumePlain),
}

// draw fills a message with random values, without empty slices and maps that are not nil,
// because they are decoded as nil.
func draw(t *rapid.T, m any) { fill(t, reflect.ValueOf(m).Elem(), 4) }

// onlyText limits strings to UTF-8, which other implementations require.
var onlyText bool

func fill(t *rapid.T, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = drawTime(t)
		return
	case *Stamp:
		*p = Stamp(drawTime(t))
		return
	case *netip.Addr:
		if b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "addr"); b[0] != 0 {
			*p, _ = netip.AddrFromSlice(b)
		}
		return
	case *other.Money:
		*p = other.Cents(int64(rapid.Uint16().Draw(t, "cents")))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int") >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(rapid.Uint64().Draw(t, "uint") >> (64 - v.Type().Bits()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float")))
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(complex(float64(rapid.Float32().Draw(t, "real")), float64(rapid.Float32().Draw(t, "imag"))))
	case reflect.String:
		if onlyText {
			v.SetString(rapid.String().Draw(t, "text"))
			return
		}
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "string")))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(t, v.Field(i), depth-1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if n := length(t, depth); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		for range length(t, depth) {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth-1)
			fill(t, value, depth-1)
			v.SetMapIndex(key, value)
		}
	}
}

func length(t *rapid.T, depth int) int {
	if depth <= 0 {
		return 0
	}
	return rapid.IntRange(0, 3).Draw(t, "length")
}

func drawTime(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "zero") {
		return time.Time{}
	}
	return time.Unix(rapid.Int64Range(-1<<36, 1<<38).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t, "nanos")).UTC()
}
