package fsm

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

const (
	chunkBytes   = 1 << 20 // target size: few calls of the codec, and little memory in addition to the state
	chunkFirst   = 64      // entries of the first chunk of a map or list, whose encoded size is not known yet
	chunkEntries = 1 << 16 // entries of a chunk, at most
)

// chunks encodes a value in chunks. Each chunk consists of some entries of one of the
// Parts. The first chunk holds everything else. Equal values make equal chunks. A chunk
// is valid until emit returns.
func (c Codec[T]) chunks(v *T, emit func([]byte) error) (err error) {
	defer recovered(&err)
	p := chunkWriter[T]{codec: c, emit: emit}
	whole := reflect.ValueOf(v).Elem()
	if slices.Equal(c.Parts, []string{""}) {
		p.entries(whole, func(part *T) reflect.Value { return reflect.ValueOf(part).Elem() })
		return p.err
	}
	rest := *v // without the Parts
	for _, name := range c.Parts {
		fieldOf(&rest, name).SetZero()
	}
	p.write(&rest)
	for _, name := range c.Parts {
		p.entries(fieldOf(v, name), func(part *T) reflect.Value { return fieldOf(part, name) })
	}
	return p.err
}

// fieldOf returns a field of a struct, exported or not, that can be set.
func fieldOf[T any](v *T, name string) reflect.Value {
	f := reflect.ValueOf(v).Elem().FieldByName(name)
	if f.CanSet() {
		return f
	}
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// chunkWriter writes the chunks of a value.
type chunkWriter[T any] struct {
	codec Codec[T]
	emit  func([]byte) error
	b     []byte
	err   error
}

// write writes a chunk and returns its size in bytes.
func (p *chunkWriter[T]) write(part *T) int {
	if p.err != nil {
		return 0
	}
	if cap(p.b) > 4*chunkBytes {
		p.b = nil
	}
	if p.b, p.err = p.codec.append(p.b[:0], part); p.err == nil && len(p.b) > 0 {
		p.err = p.emit(p.b)
	}
	return len(p.b)
}

// entries writes a map or a list in chunks. in returns the map or list of a value.
func (p *chunkWriter[T]) entries(all reflect.Value, in func(*T) reflect.Value) {
	var keys []reflect.Value
	if all.Kind() == reflect.Map {
		keys = all.MapKeys()
		slices.SortFunc(keys, compareKeys)
	}
	for begin, n := 0, chunkFirst; begin < all.Len() && p.err == nil; {
		part := new(T)
		n = min(n, all.Len()-begin)
		if all.Kind() == reflect.Map {
			m := reflect.MakeMapWithSize(all.Type(), n)
			for _, k := range keys[begin : begin+n] {
				m.SetMapIndex(k, all.MapIndex(k))
			}
			in(part).Set(m)
		} else {
			in(part).Set(all.Slice(begin, begin+n))
		}
		size := p.write(part)
		begin += n
		n = min(max(1, n*chunkBytes/max(size, 1)), 4*n, chunkEntries)
	}
}

// compareKeys compares two keys of a map.
func compareKeys(a, b reflect.Value) int {
	switch {
	case a.Kind() == reflect.String:
		return cmp.Compare(a.String(), b.String())
	case a.CanInt():
		return cmp.Compare(a.Int(), b.Int())
	case a.CanUint():
		return cmp.Compare(a.Uint(), b.Uint())
	}
	panic(fmt.Sprintf("keys of type %v have no order", a.Type())) // chunks returns it as an error of the codec
}
