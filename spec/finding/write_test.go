package finding

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/golden"
)

const printed = "version: 1\n" +
	"\tname: x\t日本: é\u0301 -> y # \x1b[31m\u202e\n" +
	"  - parser -> pricng: {message: Order, key: Account}\n" +
	"a: \"\n" +
	"b: |\n" +
	"  text\n"

// printerFindings has each kind of range, and texts with characters that need escapes.
var printerFindings = []Finding{
	{Code: "TG102", Severity: Error, File: "/home/ann/shop/topology.yml", Message: "the whole file"},
	{Code: "TG109", Severity: Error, File: "/home/ann/shop/topology.yml", Range: Range{2, 2, 2, 6}, Pointer: "/name", Message: "a tab before"},
	{Code: "TG109", Severity: Error, File: "/home/ann/shop/topology.yml", Range: Range{2, 10, 2, 12}, Message: "wide runes, a tab within the line"},
	{Code: "TG109", Severity: Error, File: "/home/ann/shop/topology.yml", Range: Range{2, 14, 2, 22}, Message: "a mark without width"},
	{Code: "TG204", Severity: Error, File: "/home/ann/shop/topology.yml", Range: Range{3, 15, 3, 21}, Pointer: "/edges/1", Message: `processor "pricng" is not declared`, Suggestion: `did you mean "pricing"?`},
	{Code: "TG101", Severity: Error, File: "/home/ann/shop/topology.yml", Range: Range{4, 1, 4, 1}, Message: "an empty range: the lines around"},
	{Code: "TG111", Severity: Error, File: "/home/ann/shop/topology.yml", Range: Range{5, 4, 6, 7}, Message: "several lines"},
	{Code: "TG401", Severity: Warning, File: "/home/ann/shop/my file,100%.go", Range: Range{7, 1, 7, 5}, Message: "no source, 100%: \x1b[0m"},
	{Code: "TG111", Severity: Error, File: "/elsewhere/x.yml", Range: Range{9, 1, 9, 5}, Message: "beyond the file"},
}

var printerSources = map[string][]byte{"/home/ann/shop/topology.yml": []byte(printed), "/elsewhere/x.yml": []byte("one line")}

func TestPrinters(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"text":       func(w io.Writer) error { return WriteText(w, printerFindings, printerSources, false) },
		"text-color": func(w io.Writer) error { return WriteText(w, printerFindings, printerSources, true) },
		"json":       func(w io.Writer) error { return WriteJSON(w, printerFindings, "/home/ann/shop") },
		"json-empty": func(w io.Writer) error { return WriteJSON(w, nil, "/home/ann/shop") },
		"sarif":      func(w io.Writer) error { return WriteSARIF(w, printerFindings, "/home/ann/shop") },
		"sarif-empty": func(w io.Writer) error {
			return WriteSARIF(w, nil, "/home/ann/shop")
		},
		"github": func(w io.Writer) error { return WriteGitHub(w, printerFindings, "/home/ann/shop") },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := write(&out); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata/write", name+".txt"), out.Bytes())
			if err := write(failing{}); !errors.Is(err, errFull) && name != "" {
				t.Error("an error of the writer is lost:", err)
			}
		})
	}
}

var errFull = errors.New("the disk is full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestTextOfTheContract checks the exact output of the example that tools may rely on.
func TestTextOfTheContract(t *testing.T) {
	src := strings.Repeat("\n", 11) + "  - parser -> pricng: {message: Order, key: Account}\n"
	finding := New("TG204", "topology.yml", Range{12, 15, 12, 21}, "/edges/1", `processor "pricng" is not declared`, `did you mean "pricing"?`)
	var out bytes.Buffer
	if err := WriteText(&out, []Finding{finding}, map[string][]byte{"topology.yml": []byte(src)}, false); err != nil {
		t.Fatal(err)
	}
	want := `topology.yml:12:15: error TG204: processor "pricng" is not declared; did you mean "pricing"?
   12 |   - parser -> pricng: {message: Order, key: Account}
      |               ^^^^^^
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

// TestJSONHasEveryKey checks the keys of a finding, which tools read.
func TestJSONHasEveryKey(t *testing.T) {
	var out bytes.Buffer
	if err := WriteJSON(&out, []Finding{{}}, ""); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"code", "severity", "file", "line", "column", "end_line", "end_column", "pointer", "message", "suggestion"} {
		if _, ok := all[0][key]; !ok {
			t.Errorf("the key %s is missing", key)
		}
	}
	if len(all[0]) != 10 {
		t.Errorf("there are %d keys", len(all[0]))
	}
}

func TestRelativePath(t *testing.T) {
	for _, c := range []struct{ dir, file, want string }{
		{"/home/ann/shop", "/home/ann/shop/topology.yml", "topology.yml"},
		{"/home/ann/shop", "/home/ann/shop/a/b.go", "a/b.go"},
		{"/home/ann/shop", "/src/other/b.go", "/src/other/b.go"},
		{"/home/ann/shop", "/home/ann/shop/..b.go", "..b.go"},
		{"/home/ann/shop", "topology.yml", "topology.yml"},
		{"", "/work/b.go", "/work/b.go"},
	} {
		if got := RelativePath(c.dir, c.file); got != c.want {
			t.Errorf("RelativePath(%q, %q) = %q, want %q", c.dir, c.file, got, c.want)
		}
	}
}

func TestNewKnowsItsCodes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New accepts a code without a section")
		}
	}()
	New("TG999", "", Range{}, "", "", "")
}

// TestJSONHidesNothing checks that JSON escapes control characters and invisible characters.
func TestJSONHidesNothing(t *testing.T) {
	const hidden = "\u202e \u009b31m \u200b \x7f \U000e0041 \x1b"
	var out bytes.Buffer
	finding := Finding{Message: hidden, Pointer: "/x\u202e"}
	if err := WriteJSON(&out, []Finding{finding}, ""); err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(out.String(), "\n", ""); text != harmless(text) || !strings.Contains(text, `"/x\u202e"`) || !strings.Contains(text, `\udb40\udc41`) {
		t.Error(text)
	}
	var back []struct{ Message string }
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[0].Message != hidden {
		t.Errorf("%q, %v", back, err)
	}
}
