package finding

import (
	"maps"
	"slices"
	"strings"
)

// Explanation is what the catalogue says about a code.
type Explanation struct {
	Code     string
	Title    string // a few words, in lower case
	Severity Severity
	Reason   string // what is wrong and why it matters, in sentences
	Wrong    string // an example that has the finding
	Right    string // the example, repaired
}

// Explain returns the explanation of a code such as "TG204".
func Explain(code string) (Explanation, bool) {
	e, ok := catalogue[code]
	return e, ok
}

// Codes returns every code, sorted.
func Codes() []string {
	return slices.Sorted(maps.Keys(catalogue))
}

// String returns the explanation as `topogen explain` prints it.
func (e Explanation) String() string {
	var out strings.Builder
	out.WriteString(e.Code + " (" + string(e.Severity) + "): " + e.Title + "\n\n" + e.Reason + "\n")
	for _, example := range []struct{ title, text string }{{"Wrong", e.Wrong}, {"Right", e.Right}} {
		if example.text != "" {
			out.WriteString("\n" + example.title + ":\n\n    " + strings.ReplaceAll(strings.TrimRight(example.text, "\n"), "\n", "\n    ") + "\n")
		}
	}
	return out.String()
}

// catalogue has every finding that topogen makes.
var catalogue = func() map[string]Explanation {
	all := map[string]Explanation{}
	for _, part := range []struct {
		severity Severity
		entries  []Explanation
	}{
		{Error, catalogueSyntax},
		{Error, catalogueMeaning},
		{Error, catalogueMachines},
		{Error, catalogueGo},
		{Warning, catalogueWarnings},
		{Warning, catalogueGoWarnings},
		{Error, catalogueFiles},
	} {
		for _, e := range part.entries {
			if _, ok := all[e.Code]; ok {
				panic("finding: the catalogue has " + e.Code + " twice")
			}
			e.Severity = part.severity
			all[e.Code] = e
		}
	}
	return all
}()
