package plan

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// filled gives every field of a value of type t something that is not zero.
func filled(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filled(t.Field(i).Type, depth))
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.Append(v, filled(t.Elem(), depth-1)))
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(filled(t.Elem(), depth-1))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	default:
		v.SetInt(1)
	}
	return v
}

// TestHashCountsEveryField checks that clearing any field changes the hash. A quick run clears
// a field of a type once, and not wherever the type occurs.
func TestHashCountsEveryField(t *testing.T) {
	everywhere := speed.Pick(t, false, true, true)
	cleared := map[string]bool{} // by type and field
	p := filled(reflect.TypeFor[Plan](), 4).Interface().(Plan)
	seen := map[[32]byte]string{Hash(&p): "the whole"}
	var visit func(v reflect.Value, path, field string)
	visit = func(v reflect.Value, path, field string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				visit(v.Field(i), path+"."+name, v.Type().String()+"."+name)
			}
			return
		case reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i), path+"[]", field+"[]")
			}
		case reflect.Pointer:
			if !v.IsNil() {
				visit(v.Elem(), path, field+"*")
			}
		}
		if v.IsZero() || cleared[field] && !everywhere {
			return
		}
		cleared[field] = true
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.SetZero()
		h := Hash(&p)
		if other, ok := seen[h]; ok {
			t.Errorf("without %s the hash is that of %s", path, other)
		}
		seen[h] = "without " + path
		v.Set(old)
	}
	visit(reflect.ValueOf(&p).Elem(), "Plan", "")
	if len(seen) < 100 {
		t.Errorf("only %d fields were looked at", len(seen))
	}
}

// TestHashStays checks that the hash does not change, because existing files have it in their
// headers.
func TestHashStays(t *testing.T) {
	p := &Plan{Name: "orders", Edges: []Edge{{Ident: "AToB", From: -1, Selector: Selector{Access: []string{"A"}}}}, Bound: true}
	h := Hash(p)
	const want = "1e9649a7d3b90559"
	if got := hex.EncodeToString(h[:8]); got != want {
		t.Errorf("Hash = %s, want %s", got, want)
	}
}

func TestHashTellsPartsApart(t *testing.T) {
	a, b := &Plan{Name: "ab", Source: "c"}, &Plan{Name: "a", Source: "bc"}
	if Hash(a) == Hash(b) {
		t.Error("the end of one string is taken for the beginning of the next")
	}
}
