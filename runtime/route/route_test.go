package route

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/topogen/topogen/internal/test/speed"
)

const many = math.MaxInt // number of instances for which nearly the whole hash is visible

// TestXXH64 compares with published values of the algorithm's author and others.
func TestXXH64(t *testing.T) {
	for key, hash := range map[string]uint64{
		"":    0xef46db3751d8e999,
		"a":   0xd24ec4f1a98c6e5b,
		"abc": 0x44bc2cf5ad770999,
		"Nobody inspects the spammish repetition": 0xfbcea83c8a378bf1,
	} {
		want := int(hash % many)
		if got := String(key, many); got != want {
			t.Errorf("String(%q) is %#x, want %#x", key, got, want)
		}
		if got := Bytes([]byte(key), many); got != want {
			t.Errorf("Bytes(%q) is %#x, want %#x", key, got, want)
		}
	}
}

// TestSplitmix64 compares with the published outputs of the generator whose finalizer
// is mix.
func TestSplitmix64(t *testing.T) {
	const seed, gamma = uint64(1234567), 0x9e3779b97f4a7c15
	for i, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
	} {
		if got := mix(seed + uint64(i+1)*gamma); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
	if mix(0) != 0 {
		t.Error("0 is not mapped to itself")
	}
}

// TestVectors checks the table of docs/reference/routing.md against the code.
func TestVectors(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if len(cells) != 4 || !strings.HasPrefix(cells[2], "0x") {
			continue
		}
		rows++
		instance := instanceOf(t, cells[0], cells[1])
		hash, err := strconv.ParseUint(cells[2], 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := instance(many); got != int(hash%many) {
			t.Errorf("%s %s: the hash is not %#x", cells[0], cells[1], hash)
		}
		if got := fmt.Sprint(instance(1000)); got != cells[3] {
			t.Errorf("%s %s: the instance is %s, want %s", cells[0], cells[1], got, cells[3])
		}
	}
	if rows < 15 {
		t.Errorf("the page has %d vectors", rows)
	}
}

// instanceOf returns the function that maps a key, given as Go source, to an instance.
func instanceOf(t *testing.T, kind, key string) func(n int) int {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	switch kind {
	case "string":
		s, err := strconv.Unquote(key)
		fail(err)
		return func(n int) int { return String(s, n) }
	case "[]byte":
		s, err := strconv.Unquote(key)
		fail(err)
		return func(n int) int { return Bytes([]byte(s), n) }
	case "int":
		v, err := strconv.ParseInt(key, 0, 64)
		fail(err)
		return func(n int) int { return Int(v, n) }
	case "uint":
		v, err := strconv.ParseUint(key, 0, 64)
		fail(err)
		return func(n int) int { return Uint(v, n) }
	case "bool":
		v, err := strconv.ParseBool(key)
		fail(err)
		return func(n int) int { return Bool(v, n) }
	}
	t.Fatalf("no kind of key: %q", kind)
	return nil
}

// TestEqualKeysOfAllTypes checks that an integer is mapped to the same instance in
// every type; negative ones are sign-extended.
func TestEqualKeysOfAllTypes(t *testing.T) {
	speed.Checks(t, 40, 100, 1000)
	type account string
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10_000).Draw(t, "n")
		v := rapid.Int8().Draw(t, "v")
		want := Int(int64(v), n)
		if Int(v, n) != want || Int(int16(v), n) != want || Int(int32(v), n) != want || Int(int(v), n) != want || Uint(uint64(int64(v)), n) != want {
			t.Fatalf("%d is mapped to different instances", v)
		}
		u := uint8(v)
		if w := Uint(uint64(u), n); Uint(u, n) != w || Uint(uint16(u), n) != w || Uint(uint32(u), n) != w || Uint(uintptr(u), n) != w {
			t.Fatalf("%d is mapped to different instances", u)
		}
		s := rapid.String().Draw(t, "s")
		if String(s, n) != Bytes([]byte(s), n) || String(account(s), n) != String(s, n) {
			t.Fatalf("%q is mapped to different instances", s)
		}
		if b := Bool(v > 0, n); b < 0 || b >= n || want < 0 || want >= n || String(s, n) >= n {
			t.Fatal("not an instance")
		}
	})
}

// TestConsecutiveKeysSpread checks that consecutive keys are spread evenly over few
// instances.
func TestConsecutiveKeysSpread(t *testing.T) {
	const keys, n = 80_000, 8
	var count [n]int
	for i := range keys {
		count[Int(i, n)]++
	}
	for i, c := range count {
		if c < keys/n*95/100 || c > keys/n*105/100 {
			t.Errorf("instance %d gets %d of %d keys", i, c, keys)
		}
	}
}

func TestID(t *testing.T) {
	for id, want := range map[int64]int{-1 << 63: -1, -1: -1, 0: 0, 4: 4, 5: -1, 1<<63 - 1: -1} {
		if got := ID(id, 5); got != want {
			t.Errorf("ID(%d, 5) is %d, want %d", id, got, want)
		}
	}
	for _, n := range []int{0, -1, math.MinInt} {
		if got := ID(3, n); got != -1 {
			t.Errorf("ID(3, %d) is %d, want -1", n, got)
		}
	}
	if ID(^uint64(0), 5) != -1 || ID(uint8(200), 201) != 200 || ID(int8(-128), 1000) != -1 {
		t.Error("an id out of range is mapped to an instance")
	}
}
