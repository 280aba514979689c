package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/internal/test/allocated"
	"github.com/topogen/topogen/internal/test/speed"
)

func sampleRecord() *record {
	root := "/"
	if runtime.GOOS == "windows" {
		root = `C:\`
	}
	return &record{
		Key:      "topology.yml\x00--strict",
		Identity: sha256.Sum256([]byte("id")),
		Listings: []recordedListing{{root + "p", sha256.Sum256([]byte("names"))}},
		Inputs: []entry{
			{Path: root + "p/a.go", Kind: regular, Racy: true, Stat: stat{1, -2, 3, 4, 1 << 63}, Sum: sha256.Sum256([]byte("a"))},
			{Path: root + "p/go.work", Kind: absent}, {Path: root + "p/x.go", Kind: other},
		},
		Outputs: []entry{{Path: root + "p/x_gen.go", Kind: regular}},
	}
}

func encoded(t *testing.T, r *record) []byte {
	t.Helper()
	b, ok := r.encode()
	if !ok {
		t.Fatalf("cannot be written: %+v", r)
	}
	return b
}

// sealed is body as encode would write it.
func sealed(body []byte) []byte {
	b := append([]byte(magic), body...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func TestRecordSurvivesTheDisk(t *testing.T) {
	want := sampleRecord()
	got, ok := decode(encoded(t, want))
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDamagedRecordsAreNoRecords(t *testing.T) {
	whole := encoded(t, sampleRecord())
	for i := range whole {
		if _, ok := decode(whole[:i]); ok {
			t.Fatalf("the first %d of %d bytes pass", i, len(whole))
		}
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		if _, ok := decode(flipped); ok {
			t.Fatalf("a wrong bit in byte %d passes", i)
		}
	}
	if _, ok := decode(append(bytes.Clone(whole), 0)); ok {
		t.Error("a byte more passes")
	}
}

func TestHostileRecordsAreNoRecords(t *testing.T) {
	for name, change := range map[string]func(*record){
		"relative input":    func(r *record) { r.Inputs[0].Path = "a.go" },
		"relative folder":   func(r *record) { r.Listings[0].Dir = "." },
		"no such kind":      func(r *record) { r.Inputs[0].Kind = 3 },
		"output not a file": func(r *record) { r.Outputs[0].Kind = absent },
	} {
		r := sampleRecord()
		change(r)
		if _, ok := r.encode(); ok {
			t.Errorf("%s: is written", name)
		}
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := decode(sealed(body)); ok {
			t.Errorf("%s: is read", name)
		}
	}
}

// TestRecordsAreUTF8 checks that paths must be UTF-8, because JSON would change others.
func TestRecordsAreUTF8(t *testing.T) {
	for name, change := range map[string]func(*record){
		"key":    func(r *record) { r.Key += "\xff" },
		"value":  func(r *record) { r.Value += "\xff" },
		"folder": func(r *record) { r.Listings[0].Dir += "\xff" },
		"input":  func(r *record) { r.Inputs[0].Path += "\xff" },
		"output": func(r *record) { r.Outputs[0].Path += "\xff" },
	} {
		r := sampleRecord()
		change(r)
		if _, ok := r.encode(); ok {
			t.Errorf("%s: is written", name)
		}
	}
}

func TestLoadOpensPlainFilesOnly(t *testing.T) {
	p := newProject(t)
	p.mustBuild()
	name := p.cache.file(p.path("topology.yml"))

	if err := os.Truncate(name, recordBytesMax+1); err != nil {
		t.Skip(err)
	}
	if p.fresh() {
		t.Error("a record that is too large was read")
	}
	p.mustBuild()
	if err := os.Rename(name, name+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name+".real", name); err != nil {
		t.Skip(err)
	}
	if p.fresh() {
		t.Error("a symbolic link was read")
	}
}

func TestRecordsAreBounded(t *testing.T) {
	p := newProject(t)
	names := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(p.cache.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	p.mustBuild()
	stray, notOurs := filepath.Join(p.cache.dir, tempPrefix+"1"+tempSuffix), filepath.Join(p.cache.dir, "notes")
	for _, name := range []string{stray, notOurs} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := p.cache.now().Add(-2 * tempAgeMax)
	for _, name := range []string{stray, p.cache.file(p.path("topology.yml"))} {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	most := speed.Pick(t, 50, recordsMax, recordsMax)
	for i := range most { // empty ones suffice
		name := filepath.Join(p.cache.dir, fmt.Sprintf("%032x%s", i, recordSuffix))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.cache.pruneTo(most)
	if got := len(names("*" + recordSuffix)); got != most {
		t.Errorf("%d records, want %d", got, most)
	}
	if p.fresh() {
		t.Error("the oldest record was not the one to go")
	}
	if len(names(tempPrefix+"*")) > 0 {
		t.Error("a stray temporary was left")
	}
	if len(names("notes")) == 0 {
		t.Error("a file that is not ours was removed")
	}
}

// TestBytesAreBounded checks that the oldest records over bytesMax are removed.
func TestBytesAreBounded(t *testing.T) {
	p := newProject(t)
	p.mustBuild()
	for i := range 4 {
		name := filepath.Join(p.cache.dir, fmt.Sprintf("%032x%s", i, recordSuffix))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, bytesMax/3); err != nil {
			t.Skip(err)
		}
		at := p.cache.now().Add(time.Duration(i+1) * time.Hour)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	p.cache.prune()
	left, err := filepath.Glob(filepath.Join(p.cache.dir, "*"+recordSuffix))
	if err != nil || len(left) != 3 || strings.HasPrefix(filepath.Base(left[0]), fmt.Sprintf("%032x", 0)) || p.fresh() {
		t.Errorf("%v are left (%v)", left, err)
	}
}

// FuzzDecode checks that no input panics, and that a decoded record can be encoded and decoded
// again.
func FuzzDecode(f *testing.F) {
	body, err := json.Marshal(sampleRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"Inputs": [{"Kind": 1}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		decode(body)
		file := sealed(body)
		var r *record
		var ok bool
		const types = 16 << 10                                                    // encoding/json describes each type when it is first used
		allocated.Within(t, types+200*len(file), func() { r, ok = decode(file) }) // {} is an input
		if !ok {
			return
		}
		again, ok := decode(encoded(t, r))
		if !ok || !reflect.DeepEqual(again, r) {
			t.Fatalf("%q is read as %+v, and then as %+v", body, r, again)
		}
	})
}
