package cache

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
)

func sampleRecord() *record {
	root := "/"
	if runtime.GOOS == "windows" {
		root = `C:\`
	}
	return &record{
		key:      "topology.yml\x00--strict",
		identity: sha256.Sum256([]byte("id")),
		listings: []recordedListing{{root + "p", sha256.Sum256([]byte("names"))}},
		inputs: []entry{
			{path: root + "p/a.go", kind: regular, racy: true, stat: stat{1, -2, 3, 4, 5}, sum: sha256.Sum256([]byte("a"))},
			{path: root + "p/go.work", kind: absent}, {path: root + "p/x.go", kind: other},
		},
		outputs: []entry{{path: root + "p/x_gen.go", kind: regular, output: true}},
	}
}

func TestRecordSurvivesTheDisk(t *testing.T) {
	want := sampleRecord()
	got, ok := decode(want.encode())
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDamagedRecordsAreNoRecords(t *testing.T) {
	whole := sampleRecord().encode()
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
		"relative input":    func(r *record) { r.inputs[0].path = "a.go" },
		"relative folder":   func(r *record) { r.listings[0].dir = "." },
		"no such kind":      func(r *record) { r.inputs[0].kind = 3 },
		"output not a file": func(r *record) { r.outputs[0].kind = absent },
		"input as output":   func(r *record) { r.outputs[0].output = false },
		"output as input":   func(r *record) { r.inputs[0].output = true },
	} {
		r := sampleRecord()
		change(r)
		if _, ok := decode(r.encode()); ok {
			t.Errorf("%s: passes", name)
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
	if p.start().Fresh() {
		t.Error("a record that is too large was read")
	}
	p.mustBuild()
	if err := os.Rename(name, name+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name+".real", name); err != nil {
		t.Skip(err)
	}
	if p.start().Fresh() {
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
	for i := range recordsMax {
		if !p.cache.save(&record{key: string(rune('0' + i))}) {
			t.Fatal("not saved")
		}
	}
	if got := len(names("*" + recordSuffix)); got != recordsMax {
		t.Errorf("%d records, want %d", got, recordsMax)
	}
	if p.start().Fresh() {
		t.Error("the oldest record was not the one to go")
	}
	if len(names(tempPrefix+"*")) > 0 {
		t.Error("a stray temporary was left")
	}
	if len(names("notes")) == 0 {
		t.Error("a file that is not ours was removed")
	}
}

// FuzzDecode: a record is exactly what encode writes; anything else is none, and
// nothing panics or takes more memory than the input has.
func FuzzDecode(f *testing.F) {
	whole := sampleRecord().encode()
	f.Add(whole[len(magic) : len(whole)-sha256.Size])
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, fields []byte) {
		decode(fields)
		r, ok := decodeFields(fields)
		if !ok {
			return
		}
		sealed := r.encode()
		if got := sealed[len(magic) : len(sealed)-sha256.Size]; !bytes.Equal(got, fields) {
			t.Fatalf("%q is read as a record that is written as %q", fields, got)
		}
		if _, ok := decode(sealed); !ok && len(sealed) <= recordBytesMax {
			t.Fatal("a record that was read cannot be written and read again")
		}
	})
}
