package finding

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/topogen/topogen/docs/reference"
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
	e, ok := catalogue()[code]
	return e, ok
}

// Codes returns every code, sorted.
func Codes() []string {
	return slices.Sorted(maps.Keys(catalogue()))
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

// catalogue has every finding that topogen makes: a section of the reference for each.
var catalogue = sync.OnceValue(func() map[string]Explanation { return sections(reference.Findings) })

// sections panics where it would lose an entry: the page is written from what it reads.
func sections(page string) map[string]Explanation {
	page = strings.ReplaceAll(page, "\r\n", "\n") // what git makes of a checkout on Windows
	all := map[string]Explanation{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		section, _, _ = strings.Cut(section, "\n<a id=") // of the next one
		heading, text, _ := strings.Cut(section, "\n")
		code, title, _ := strings.Cut(heading, ": ")
		if _, twice := all[code]; twice || title == "" {
			panic("finding: the page has no title for " + code + ", or has it twice")
		}
		severity := Error
		if strings.HasPrefix(code, "TG4") {
			severity = Warning
		}
		reason, _, _ := strings.Cut(text, "\nWrong:\n")
		all[code] = Explanation{
			Code: code, Title: title, Severity: severity, Reason: strings.TrimSpace(reason),
			Wrong: example(text, "Wrong"), Right: example(text, "Right"),
		}
	}
	return all
}

// example returns the block of code under a title; "" for none.
func example(text, title string) string {
	_, block, _ := strings.Cut(text, "\n"+title+":\n\n```")
	_, block, _ = strings.Cut(block, "\n") // behind the language
	block, _, _ = strings.Cut(block, "```")
	return block
}
