package fsm

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
)

// fingerprint returns a hash of a state. States with equal contents have equal hashes.
// It covers fields, exported or not, lists, maps, and values behind pointers. It leaves
// out values that no codec writes: fields with the tag `topo:"-"`, locks, and the
// unexported fields of a type of another package behind a pointer, such as a logger.
// values is the number of values that were hashed. ok is false if that would be more
// than most.
func fingerprint(v reflect.Value, most int) (sum uint64, values int, ok bool) {
	p := printer{path: make(map[pointer]int), pkg: packageOf(v.Type()), most: most}
	sum = p.part(v)
	return sum, p.values, p.values <= most
}

var seed = maphash.MakeSeed()

type printer struct {
	hash   *maphash.Hash
	path   map[pointer]int // the pointers that lead to the current value, and how many came before each
	pkg    string          // the package of the state's type
	values int
	most   int
}

type pointer struct {
	addr uintptr
	typ  reflect.Type
}

// packageOf returns the package of a type, or of its element type.
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

// part returns the hash of some values, independent of the values before them.
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

// compound hashes a value that contains other values.
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
		if t.PkgPath() == "sync" || t.PkgPath() == "sync/atomic" { // other goroutines may be using it
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
		var sum uint64 // a sum of the pairs' hashes, because their order is random
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
	if n, ok := p.path[at]; ok { // a cycle
		p.number(uint64(n))
		return
	}
	p.path[at] = len(p.path)
	p.value(v.Elem())
	delete(p.path, at)
}

// hides reports whether a type of another package has only unexported fields.
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

// bytes counts bytes that are hashed at once.
func (p *printer) bytes(n int) {
	p.number(uint64(n))
	p.values += n / 64
}
