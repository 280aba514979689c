package finding

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/topogen/topogen/spec/internal/golden"
)

// TestCatalogueIsWhole checks that each code has an entry, each entry a code, and
// the severity of its group.
func TestCatalogueIsWhole(t *testing.T) {
	source, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`\w+ += "(TG\d{3})"`).FindAllStringSubmatch(string(source), -1)
	for _, m := range declared {
		if _, ok := Explain(m[1]); !ok {
			t.Errorf("%s has no entry", m[1])
		}
	}
	if len(declared) != len(Codes()) {
		t.Errorf("%d codes are declared, and %d have an entry", len(declared), len(Codes()))
	}
	for _, code := range Codes() {
		e, _ := Explain(code)
		if e.Code != code || e.Title == "" || e.Reason == "" || strings.HasSuffix(e.Title, ".") || !strings.ContainsAny(e.Reason[len(e.Reason)-1:], ".?") {
			t.Errorf("%s: the entry is not whole: %+v", code, e)
		}
		if warning := strings.HasPrefix(code, "TG4"); warning != (e.Severity == Warning) {
			t.Errorf("%s has the severity %s", code, e.Severity)
		}
	}
}

func TestExplain(t *testing.T) {
	if _, ok := Explain("TG999"); ok {
		t.Error("TG999 is explained")
	}
	e, _ := Explain(NotDeclared)
	golden.Compare(t, "testdata/explain.txt", []byte(e.String()))
}
