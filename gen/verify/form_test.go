package verify

import (
	"bytes"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestForms has declarations printed that differ in names, and holds the result
// against gofmt.
func TestForms(t *testing.T) {
	long := strings.Repeat("long", 25)
	declarations := []string{
		"type _ struct{\npool . Link\n%s queue.Edge [%s]\n}",
		"type _ struct{\na int\n%s int // %s\n}",
		"type _ struct{\na,%s int\nb %s\n}",
		"type _ struct{ %s,%s int }",
		"type _ struct{ %s %s }",
		"type _ interface{ %s (%s) }",
		"type _ interface{\nA (%s * %s) error\n}",
		"func (s * S) _ (%s int) int { return s.%s(1 , 2) }",
		"func _ (%s int) {\nif %s := 1;a != nil {\nreturn\n}\nfor {\n}\n}",
		"func _ () {\nx := T{\na : %s ,\nlonger : %s ,\n}\n}",
		"func _ () {\na () // %s\nlonger () // %s\n}",
		"func _ () (%s int) { return %s + 0X1 }",
		"func _ (%s string) string {\nreturn \"\\\"// \" + `%s` + '\"'\n}",
		"// _ is %s.\n//\n//\tcode %s\nfunc _ () {\n}",
		"// _ is %s and %s.\nfunc _ () {\nf(1 * 2 , 3)\n}",
		"// _ ends in %s and a space. \nfunc _ (%s int) {\n}",
		"// # %s\n// - %s\nfunc _ () {\n}",
		"var (\n%s = 1\nb = %s\n)",
	}
	var source strings.Builder
	source.WriteString("package p\n\nimport \"time\"\n")
	for _, names := range [][2]string{{"a", "b"}, {"äö", "d"}, {"if1", long}, {long, "\u00df"}, {"a", "b"}} {
		for _, d := range declarations {
			d = strings.Replace(strings.Replace(d, "%s", names[0], 1), "%s", names[1], 1)
			source.WriteString("\n\n" + d + "\n")
		}
	}
	fset := token.NewFileSet()
	p := &part{name: "p.go", source: []byte(source.String())}
	p.reduced = p.source
	if p.syntax, p.err = parser.ParseFile(fset, p.name, p.source, parser.ParseComments|parser.SkipObjectResolution); p.err != nil {
		t.Fatal(p.err)
	}
	if p.format(fset); p.err != nil {
		t.Fatal(p.err)
	}
	whole, err := format.Source(p.source)
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := bytes.Cut(whole, []byte("import \"time\"\n"))
	want = bytes.TrimSpace(want)
	if !bytes.Equal(p.body, want) {
		t.Errorf("got\n%s\nwant\n%s", p.body, want)
	}
}

// TestFormsAreShared has what differs in names printed once.
func TestFormsAreShared(t *testing.T) {
	printed := 0
	f := forms{known: make(map[string]*form)}
	var b bytes.Buffer
	for _, name := range []string{"a", "bc", "d"} {
		source := "func (s * S) " + name + " () {\nreturn\n}"
		err := f.format(&b, []byte(source), func() error {
			printed++
			text, err := format.Source([]byte(source))
			b.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := "func (s *S) a() {\n\treturn\n}func (s *S) bc() {\n\treturn\n}func (s *S) d() {\n\treturn\n}"; b.String() != want || printed != 1 {
		t.Errorf("printed %d times: %s", printed, b.String())
	}
}
