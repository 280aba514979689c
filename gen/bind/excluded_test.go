package bind

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func TestConstraintOfFile(t *testing.T) {
	for name, want := range map[string]string{
		"a.go":                 "",
		"linux.go":             "",
		"a_linux.go":           "linux",
		"a_arm64.go":           "arm64",
		"a_linux_arm64.go":     "linux && arm64",
		"a_arm64_linux.go":     "linux",
		"a_b_windows.go":       "windows",
		"a_linux_test.go":      "linux",
		"a_unix.go":            "",
		"a_linux.pb.go":        "linux",
		"a_.go":                "",
		"a_linux_x.go":         "",
		"_linux/../a_plan9.go": "plan9",
	} {
		got := ""
		if e := constraintOf(name, []byte("// a comment\n\npackage p\n\n//go:build late\n")); e != nil {
			got = e.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	e := constraintOf("a_linux.go", []byte("// a comment\n\n//go:build x || y\n\npackage p\n"))
	if e.String() != "linux && (x || y)" {
		t.Errorf("name and line: %s", e)
	}
}

// TestConstraintOfOutput checks that the output has the constraint of the package's files, if
// all of them have one.
func TestConstraintOfOutput(t *testing.T) {
	for _, c := range []struct {
		files map[string]string // by name: the line before the package clause, or an import
		want  string
	}{
		{map[string]string{"a.go": ""}, ""},
		{map[string]string{"a.go": "//go:build x"}, "x"},
		{map[string]string{"a.go": "//go:build x", "b.go": "//go:build x"}, "x"},
		{map[string]string{"a.go": "//go:build x", "b.go": ""}, ""},
		{map[string]string{"a.go": "//go:build x", "b.go": "//go:build y && z"}, "x || (y && z)"},
		{map[string]string{"a.go": "//go:build x", "b.go": "//go:build !x"}, ""},
		{map[string]string{"a.go": "//go:build x", "b.go": "//go:build ignore"}, "x"},
		{map[string]string{"a.go": "//go:build x", "b_test.go": ""}, "x"},
		{map[string]string{"a_linux.go": "", "a_darwin.go": ""}, "darwin || linux"},
		{map[string]string{"a.go": `import "C"`}, "cgo"},
		{map[string]string{"a.go": `import "C"`, "b.go": ""}, ""},
		{map[string]string{"a.go": "//go:build !cgo", "b.go": `import "C"`}, ""},
		{map[string]string{"a_linux.go": `import "C"`, "b.go": "//go:build x"}, "(linux && cgo) || x"},
		{map[string]string{"b.go": "//go:build x"}, ""},
		{nil, ""},
	} {
		for _, compiled := range []bool{true, false} {
			s := &source{texts: make(map[string][]byte)}
			for name, line := range c.files {
				text := []byte(line + "\n\npackage p\n")
				if strings.HasPrefix(line, "import") {
					text = []byte("package p\n\n" + line + "\n")
				}
				file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case name == "b_test.go":
					s.excluded = append(s.excluded, &excludedFile{name: name, text: text, test: true, file: file})
				case name != "b.go" && (compiled || name == "a.go" || name == "a_linux.go"): // never all are left out
					s.names, s.files, s.texts[name] = append(s.names, name), append(s.files, file), text
				default:
					s.excluded = append(s.excluded, &excludedFile{name: name, text: text, file: file})
				}
			}
			if got := s.constraint(); got != c.want {
				t.Errorf("%v: %q, want %q", c.files, got, c.want)
			}
		}
	}
}
