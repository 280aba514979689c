package fsm

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
)

// fingerprint is a number that two states have in common when they hold the same: in
// fields, exported or not, in lists and maps, and behind pointers. What no codec
// writes does not count: fields with the tag `topo:"-"`, locks, and what a type of
// another package hides behind a pointer, such as a logger's. values is how many
// values it has looked at; ok is false where that would be more than most.
func fingerprint(v reflect.Value, most int) (sum uint64, values int, ok bool) {
	p := printer{path: make(map[pointer]int), pkg: packageOf(v.Type()), most: most}
	sum = p.part(v)
	return sum, p.values, p.values <= most
}

var seed = maphash.MakeSeed()

type printer struct {
	hash   *maphash.Hash
	path   map[pointer]int // the pointers that lead to where it is, and how many were before each
	pkg    string          // the package of the state
	values int
	most   int
}

type pointer struct {
	addr uintptr
	typ  reflect.Type
}

// packageOf is the package of a type, or of what it is a list of.
func packageOf(t reflect.Type) string {
	for t.Name() == "" {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return ""
		}
	}
	return t.PkgPath()
}

// part is the fingerprint of values by themselves.
func (p *printer) part(values ...reflect.Value) uint64 {
	outer := p.hash
	defer func() { p.hash = outer }()
	p.hash = new(maphash.Hash)
	p.hash.SetSeed(seed)
	for _, v := range values {
		p.value(v)
	}
	return p.hash.Sum64()
}

func (p *printer) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	p.hash.Write(b[:])
}

func (p *printer) float(f float64) { p.number(math.Float64bits(f)) }

func (p *printer) value(v reflect.Value) {
	if p.values++; p.values > p.most {
		return
	}
	switch v.Kind() {
	case reflect.Invalid:
		p.number(0)
	case reflect.Bool:
		p.number(map[bool]uint64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.number(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		p.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		p.float(v.Float())
	case reflect.Complex64, reflect.Complex128:
		p.float(real(v.Complex()))
		p.float(imag(v.Complex()))
	case reflect.String:
		p.bytes(len(v.String()))
		p.hash.WriteString(v.String())
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		p.number(uint64(v.Pointer()))
	default:
		p.compound(v)
	}
}

// compound looks at what is made of other values.
func (p *printer) compound(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		p.pointer(v)
	case reflect.Interface:
		if !v.IsNil() {
			p.hash.WriteString(v.Elem().Type().String())
		}
		p.value(v.Elem())
	case reflect.Struct:
		t := v.Type()
		if t.PkgPath() == "sync" || t.PkgPath() == "sync/atomic" { // others may use it right now
			return
		}
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" && f.Tag.Get("topo") != "-" {
				p.value(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		p.list(v)
	case reflect.Map:
		var sum uint64 // of the pairs, which come in any order
		for pairs := v.MapRange(); pairs.Next() && p.values <= p.most; {
			sum += p.part(pairs.Key(), pairs.Value())
		}
		p.number(uint64(v.Len()))
		p.number(sum)
	}
}

func (p *printer) pointer(v reflect.Value) {
	if v.IsNil() || p.hides(v.Type().Elem()) {
		p.number(uint64(v.Pointer()))
		return
	}
	at := pointer{v.Pointer(), v.Type()}
	if n, ok := p.path[at]; ok { // it leads to what holds it
		p.number(uint64(n))
		return
	}
	p.path[at] = len(p.path)
	p.value(v.Elem())
	delete(p.path, at)
}

// hides reports whether a type of another package shows nothing of what it holds.
func (p *printer) hides(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.PkgPath() == "" || t.PkgPath() == p.pkg {
		return false
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			return false
		}
	}
	return true
}

func (p *printer) list(v reflect.Value) {
	p.number(uint64(v.Len()))
	if v.Type().Elem().Kind() == reflect.Uint8 && (v.Kind() == reflect.Slice || v.CanAddr()) {
		p.bytes(v.Len())
		p.hash.Write(v.Bytes())
		return
	}
	for i := 0; i < v.Len() && p.values <= p.most; i++ {
		p.value(v.Index(i))
	}
}

// bytes counts bytes that are looked at together.
func (p *printer) bytes(n int) {
	p.number(uint64(n))
	p.values += n / 64
}
