package disksim_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/topogen/topogen/internal/test/disksim"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// content returns a file, or nil if it does not exist.
func content(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	return b
}

func put(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, f.Close())
}

// TestCrash: a power failure keeps what was synced, and of the rest each sector or nothing.
func TestCrash(t *testing.T) {
	dir, after := t.TempDir(), filepath.Join(t.TempDir(), "after")
	d := disksim.New(dir, rand.New(rand.NewPCG(1, 1)))
	put(t, dir, "a", bytes.Repeat([]byte("1"), 4096))
	d.Observe()
	d.Sync("a")
	d.SyncDir()
	put(t, dir, "a", bytes.Repeat([]byte("2"), 2048))
	put(t, dir, "b", []byte("new"))
	d.Observe()
	mixed, named := 0, 0
	for range 100 {
		d.Crash(after, disksim.Sectors(0.5))
		a := content(t, after, "a")
		if !bytes.Equal(a[2048:], bytes.Repeat([]byte("1"), 2048)) {
			t.Fatal("a synced sector is missing")
		}
		for i := 0; i < 2048; i += disksim.SectorBytes {
			if s := a[i : i+disksim.SectorBytes]; bytes.Count(s, s[:1]) != len(s) {
				t.Fatal("a sector is torn")
			}
		}
		if n := bytes.Count(a, []byte("2")); n > 0 && n < 2048 {
			mixed++
		}
		if content(t, after, "b") != nil {
			named++
		}
	}
	if mixed < 50 || named < 20 || named > 80 {
		t.Errorf("%d of 100 with some of the sectors, %d with the new name", mixed, named)
	}
	d.Sync("a")
	d.Crash(after, disksim.Sectors(1))
	if got := content(t, after, "a"); !bytes.Equal(got, content(t, dir, "a")) {
		t.Error("a synced file is not complete")
	}
}

// TestRename: a file that gets the name of another replaces it, or does not, but never both
// and never neither.
func TestRename(t *testing.T) {
	dir, after := t.TempDir(), filepath.Join(t.TempDir(), "after")
	put(t, dir, "a", []byte("old"))
	d := disksim.New(dir, rand.New(rand.NewPCG(1, 2)))
	put(t, dir, "a.new", []byte("new"))
	d.Observe()
	d.Sync("a.new")
	must(t, os.Rename(filepath.Join(dir, "a.new"), filepath.Join(dir, "a")))
	d.Observe()
	seen := map[string]int{}
	for range 100 {
		d.Crash(after, disksim.Sectors(0.5))
		seen[string(content(t, after, "a"))]++
	}
	if seen["old"] == 0 || seen["new"] == 0 || len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
	d.SyncDir()
	d.Crash(after, disksim.Sectors(1))
	if got := content(t, after, "a"); string(got) != "new" {
		t.Errorf("got %q", got)
	}
}

// TestFailedSync: after a sync that fails the system returns what was written, until the
// memory is dropped. A later sync does not write it.
func TestFailedSync(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a", bytes.Repeat([]byte("1"), 64<<10))
	d := disksim.New(dir, rand.New(rand.NewPCG(1, 3)))
	put(t, dir, "a", bytes.Repeat([]byte("2"), 64<<10))
	d.Observe()
	d.FailSync("a")
	d.Sync("a")
	if n := bytes.Count(content(t, dir, "a"), []byte("2")); n != 64<<10 {
		t.Errorf("the memory has %d new bytes", n)
	}
	d.DropCache("a")
	if n := bytes.Count(content(t, dir, "a"), []byte("2")); n == 0 || n == 64<<10 {
		t.Errorf("the disk has %d new bytes", n)
	}
}

// TestLies: each kind of fault changes what the disk has, and not what the system returns.
func TestLies(t *testing.T) {
	for name, f := range map[string]disksim.Faults{"lost": {Lost: 1}, "torn": {Torn: 1}, "misdirected": {Misdirected: 1}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "a", make([]byte, 64<<10))
			d := disksim.New(dir, rand.New(rand.NewPCG(1, 4)))
			d.SetFaults(f)
			d.Wrote("a", 8192, bytes.Repeat([]byte("2"), 4096))
			d.Sync("a")
			d.DropCache("a")
			b := content(t, dir, "a")
			right, all := bytes.Count(b[8192:12288], []byte("2")), bytes.Count(b, []byte("2"))
			if want := map[string][2]int{"lost": {0, 0}, "torn": {2048, 2048}, "misdirected": {0, 4096}}[name]; right != want[0] || all != want[1] {
				t.Errorf("%d of %d new bytes are in their place, want %v", right, all, want)
			}
		})
	}
}
