package wire

import (
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/generated_test/wire/other"
	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/runtime/wire"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// TestRoundTrip checks that decoding returns the encoded message, also with unknown fields in
// between.
func TestRoundTrip(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := c.make()
				draw(t, m)
				b, err := c.append(nil, m)
				if err != nil {
					t.Fatal(err)
				}
				unknown := drawUnknown(t)
				if wire.IsNil(b) {
					unknown = nil // means nil only if it is the whole encoding
				}
				for _, b := range [][]byte{b, slices.Concat(unknown, b), slices.Concat(b, unknown)} {
					got := c.make()
					if err := c.consume(b, got); err != nil {
						t.Fatalf("%v\n%x", err, b)
					}
					if !reflect.DeepEqual(got, m) {
						t.Fatalf("%+v came of\n%+v", got, m)
					}
				}
			})
		})
	}
}

// drawUnknown makes a field that no message has.
func drawUnknown(t *rapid.T) []byte {
	const number = 77777
	switch rapid.IntRange(0, 4).Draw(t, "unknown") {
	case 0:
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), rapid.Uint64().Draw(t, "value"))
	case 1:
		return protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), 1)
	case 2:
		return protowire.AppendFixed32(protowire.AppendTag(nil, number, protowire.Fixed32Type), 1)
	case 3:
		return protowire.AppendGroup(protowire.AppendTag(nil, number, protowire.StartGroupType), number, nil)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
}

// TestTruncated checks that a part of a message is an error, unless it ends at the end of a
// field. It cuts a message at each position, or at random positions if the message is long.
func TestTruncated(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	most := speed.Pick(t, 50, 500, math.MaxInt) // positions, because each one decodes a message
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := c.make()
				draw(t, m)
				b, err := c.append(nil, m)
				if err != nil {
					t.Fatal(err)
				}
				ends := map[int]bool{}
				for at := 0; at < len(b); {
					ends[at] = true
					_, _, n := protowire.ConsumeField(b[at:])
					at += n
				}
				for _, cut := range cuts(t, len(b), most) {
					if err := c.consume(b[:cut], c.make()); ends[cut] != (err == nil) {
						t.Fatalf("%d of %d bytes: %v", cut, len(b), err)
					}
				}
			})
		})
	}
}

// cuts returns at most the given number of positions below length.
func cuts(t *rapid.T, length, most int) []int {
	if length <= most {
		all := make([]int, length)
		for i := range all {
			all[i] = i
		}
		return all
	}
	return rapid.SliceOfN(rapid.IntRange(0, length-1), most, most).Draw(t, "cuts")
}

func sampleOrder() *Order {
	limit := 7
	return &Order{
		Account: "ann", Cents: -250, Paid: true, Note: []byte("soon"), At: time.Unix(1e9, 5).UTC(), Limit: &limit,
		Lines:  []Line{{"tea", 2, 1.5}, {strings.Repeat("long ", 40), 1, 0}, {}},
		Prices: map[string]int64{"tea": 150, "milk": 99},
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	m, one, two := sampleOrder(), 1, 2
	lists := &Lists{Ints: []int{1, 2, 3}, Names: []Name{"a"}, Times: []time.Time{time.Now()}, Pointers: []*Line{nil, {}}, Numbers: []*int{&one, nil, &two}, Matrix: Matrix{{1}, nil, {2}}}
	node := &Node{Value: 1, Next: &Node{Children: []Node{{}, {}}}, Named: map[string]*Node{"a": nil}}
	maps := &Maps{Points: map[Point]Point{{1, 2}: {3, 4}}, Digests: map[Digest]time.Duration{{1}: 1}}
	sparse := &Sparse{Items: make([]Big, 2), Pointers: []*Wide{{}}, Map: map[int]Wide{1: {}}, One: &Wide{}, Next: &Sparse{}}
	b := make([]byte, 0, 4<<10)
	if n := testing.AllocsPerRun(100, func() {
		appendOrder(b, m)
		appendLists(b, lists)
		appendNodeWhole(b, node)
		appendMaps(b, maps)
		appendSparseWhole(b, sparse)
	}); n != 0 {
		t.Errorf("appending into a buffer with room allocates %v times", n)
	}
}

// TestEmptyIsNil checks that an empty slice or map becomes nil, because protobuf cannot
// distinguish them.
func TestEmptyIsNil(t *testing.T) {
	b, err := appendPointers(nil, &Pointers{Bytes: new([]byte), List: &[]int{}, Map: &map[string]int{}})
	if err != nil {
		t.Fatal(err)
	}
	var got Pointers
	if err := consumePointers(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Bytes == nil || *got.Bytes != nil || got.List == nil || *got.List != nil || got.Map == nil || *got.Map != nil {
		t.Errorf("got %+v", got)
	}
	if b, err = appendLists(nil, &Lists{Ints: []int{}, Blobs: [][]byte{{}}}); err != nil {
		t.Fatal(err)
	}
	var lists Lists
	if err := consumeLists(b, &lists); err != nil || lists.Ints != nil || len(lists.Blobs) != 1 || lists.Blobs[0] != nil {
		t.Errorf("got %+v, %v", lists, err)
	}
}

// TestFieldsOfItsOwn checks that unexported fields are encoded, and excluded fields are not.
func TestFieldsOfItsOwn(t *testing.T) {
	m := Scalars{hidden: 3, Skipped: make(chan int), Float64: math.Copysign(0, -1), At: time.Unix(0, 0)}
	b, err := appendScalars(nil, &m)
	if err != nil {
		t.Fatal(err)
	}
	var got Scalars
	if err := consumeScalars(b, &got); err != nil || got.hidden != 3 || got.Skipped != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if !math.Signbit(got.Float64) {
		t.Error("-0 became 0")
	}
	if !got.At.Equal(m.At) || got.At.Location() != time.UTC {
		t.Errorf("1970 became %v", got.At)
	}
	if b, err = appendNested(nil, &Nested{inner: inner{"x"}}); err != nil {
		t.Fatal(err)
	}
	var nested Nested
	if err := consumeNested(b, &nested); err != nil || nested.kept != "x" {
		t.Errorf("got %+v, %v", nested, err)
	}
}

// TestOtherWriters checks valid encodings that our codecs do not write.
func TestOtherWriters(t *testing.T) {
	var b []byte
	for i := range 3 { // a list that is not packed
		b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), protowire.EncodeZigZag(int64(i)))
	}
	for _, list := range []string{"\x06", "\x08\x0a"} { // one in two parts
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), list)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, 14, protowire.VarintType), 1) // lines of another type
	var lists Lists
	if err := consumeLists(b, &lists); err != nil || !slices.Equal(lists.Ints, []int{0, 1, 2, 3, 4, 5}) || lists.Lines != nil {
		t.Errorf("got %+v, %v", lists, err)
	}
	var nested Nested // a message in two parts, and the last one of a scalar
	if err := consumeNested([]byte("\x0a\x02\x08\x02\x0a\x04\x10\x04\x10\x06"), &nested); err != nil || nested.Point != (Point{1, 3}) {
		t.Errorf("got %+v, %v", nested, err)
	}
	var maps Maps // a pair without key and value
	if err := consumeMaps([]byte("\x0a\x00"), &maps); err != nil || len(maps.Names) != 1 {
		t.Errorf("got %+v, %v", maps, err)
	}
}

func TestErrors(t *testing.T) {
	huge := protowire.AppendVarint(nil, math.MaxInt64)
	for _, c := range []struct {
		name string
		b    []byte
		read func([]byte) error
		path string
		at   int
		err  error
	}{
		{"a length beyond the end", append([]byte{0x0a}, huge...), func(b []byte) error { return consumeOrder(b, new(Order)) }, "Order.Account", 10, wire.ErrTruncated},
		{"within", []byte("\x0a\x01a\x1a\x03\x0a\x05t"), func(b []byte) error { return consumeOrder(b, new(Order)) }, "Order.Lines.Item", 7, wire.ErrTruncated},
		{"in a map", []byte("\x32\x02\x10\x80"), func(b []byte) error { return consumeOrder(b, new(Order)) }, "Order.Prices.value", 3, wire.ErrTruncated},
		{"no field number", []byte{0x00}, func(b []byte) error { return consumeOrder(b, new(Order)) }, "Order.0", 1, wire.ErrMalformed},
		{"the end of no group", []byte{0x0c}, func(b []byte) error { return consumeOrder(b, new(Order)) }, "Order.Account", 1, wire.ErrMalformed},
		{"a varint without end", slices.Repeat([]byte{0xff}, 12), func(b []byte) error { return consumeOrder(b, new(Order)) }, "Order.0", 0, wire.ErrMalformed},
		{"too large a number", []byte("\x18\x80\x04"), func(b []byte) error { return consumeScalars(b, new(Scalars)) }, "Scalars.Int8", 3, wire.ErrRange},
		{"too long an array", []byte("\xa2\x01\x05abcde"), func(b []byte) error { return consumeScalars(b, new(Scalars)) }, "Scalars.Array", 3, wire.ErrLength},
		{"too many in an array", []byte("\xb2\x01\x04\x00\x01\x00\x01"), func(b []byte) error { return consumeLists(b, new(Lists)) }, "Lists.Flags", 3, wire.ErrLength},
		{"a method of the type", []byte("\x6a\x01a"), func(b []byte) error { return consumeLists(b, new(Lists)) }, "Lists.Moneys", 2, nil},
		{"nanoseconds", []byte("\x3a\x06\x10\x80\x94\xeb\xdc\x03"), func(b []byte) error { return consumeOrder(b, new(Order)) }, "Order.At.nanos", 8, wire.ErrRange},
	} {
		err := c.read(c.b)
		e, ok := errors.AsType[*wire.Error](err)
		if !ok || e.Path != c.path || e.Offset != c.at || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %s at %d: %v", c.name, err, c.path, c.at, c.err)
		}
	}
	_, err := appendScalars(nil, &Scalars{Money: other.Cents(-1)})
	if want := "wire: Scalars.Money: a debt"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestDepth checks the maximum depth of a message that contains itself, in both directions.
func TestDepth(t *testing.T) {
	circle := &Node{}
	circle.Next = circle
	if _, err := appendNodeWhole(nil, circle); !errors.Is(err, wire.ErrDeep) {
		t.Errorf("a circle: %v", err)
	}
	var deep *Node
	for range wire.DepthMax {
		deep = &Node{Value: 1, Next: deep}
	}
	b, err := appendNodeWhole(nil, deep)
	if err != nil {
		t.Fatal(err)
	}
	var got Node
	if err := consumeNodeWhole(b, &got); err != nil || !reflect.DeepEqual(&got, deep) {
		t.Errorf("a chain of the maximum length: %v", err)
	}
	b = wire.AppendBytes([]byte{0x12}, b)
	if err := consumeNodeWhole(b, &got); !errors.Is(err, wire.ErrDeep) {
		t.Errorf("a longer chain: %v", err)
	}
}

// allocated is the memory that decoding b allocates.
func allocated(c codec, b []byte) (bytes uint64, err error) {
	m := c.make()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = c.consume(b, m)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// allocatedMax is the memory that a hostile message of n bytes may allocate: an element of 128
// bytes for each two bytes, or the room for large elements. Lists grow by doubling, so the
// memory may be four times as much until old lists are collected. The rest is for an error
// and for the test itself.
func allocatedMax(c codec, n int) uint64 {
	if c.name == "Sparse" {
		return 5<<20 + 512*uint64(n)
	}
	return 64<<10 + 256*uint64(n)
}

func FuzzConsume(f *testing.F) {
	for i, c := range codecs {
		for seed := range 3 {
			m := rapid.Custom(func(t *rapid.T) any { m := c.make(); draw(t, m); return m }).Example(seed)
			b, err := c.append(nil, m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(byte(i), b)
		}
	}
	for i := range codecs {
		f.Add(byte(i), slices.Repeat([]byte{0x0a, 0x00}, 1000))
		f.Add(byte(i), slices.Repeat([]byte{0xff}, 20))
		f.Add(byte(i), append([]byte{0x12}, protowire.AppendVarint(nil, math.MaxUint32)...))
	}
	for tag := byte(0x12); tag <= 0x62; tag += 8 {
		f.Add(byte(slices.IndexFunc(codecs, func(c codec) bool { return c.name == "Sparse" })), slices.Repeat([]byte{tag, 0x00}, 1100))
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		c := codecs[int(which)%len(codecs)]
		bytes, err := allocated(c, b)
		if bytes > allocatedMax(c, len(b)) {
			t.Fatalf("%s: %d bytes allocate %d", c.name, len(b), bytes)
		}
		if err != nil {
			return
		}
		m := c.make()
		c.consume(b, m)
		again, err := c.append(nil, m)
		if errors.Is(err, wire.ErrSparse) {
			return // unknown fields have provided the room
		}
		if err != nil {
			t.Fatalf("%s: the decoded message cannot be encoded: %v", c.name, err)
		}
		got := c.make()
		if err := c.consume(again, got); err != nil {
			t.Fatalf("%s: the encoded message cannot be decoded: %v", c.name, err)
		}
		if third, err := c.append(nil, got); err != nil || len(third) != len(again) {
			t.Fatalf("%s: %d bytes became %d, %v", c.name, len(again), len(third), err)
		}
	})
}
