package finding

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/golden"
)

// TestCatalogueIsWhole checks that each code has a section, and each section a code.
func TestCatalogueIsWhole(t *testing.T) {
	source, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`\w+ += "(TG\d{3})"`).FindAllStringSubmatch(string(source), -1)
	for _, m := range declared {
		if _, ok := Explain(m[1]); !ok {
			t.Errorf("%s has no section", m[1])
		}
	}
	if len(declared) != len(Codes()) {
		t.Errorf("%d codes are declared, and %d have a section", len(declared), len(Codes()))
	}
	for _, code := range Codes() {
		e, _ := Explain(code)
		if e.Code != code || e.Title == "" || e.Reason == "" || strings.HasSuffix(e.Title, ".") || !strings.ContainsAny(e.Reason[len(e.Reason)-1:], ".?") {
			t.Errorf("%s: the section is incomplete: %+v", code, e)
		}
	}
}

// TestCatalogueLosesNothing checks that a malformed page panics instead of losing a section.
func TestCatalogueLosesNothing(t *testing.T) {
	const entry = "\n## TG101: one\n\nA reason.\n"
	if got := sections(entry); got["TG101"].Title != "one" {
		t.Errorf("%+v", got)
	}
	for name, page := range map[string]string{"twice": entry + entry, "no title": "\n## TG101: \n", "no colon": "\n## TG101 one\n"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			sections(page)
		}()
	}
}

func TestExplain(t *testing.T) {
	if _, ok := Explain("TG999"); ok {
		t.Error("TG999 is explained")
	}
	e, _ := Explain(NotDeclared)
	golden.Compare(t, "testdata/explain.txt", []byte(e.String()))
}
