package cli

import (
	"strings"
	"testing"

	"github.com/topogen/topogen/spec/finding"
)

// TestLimited: errors are kept rather than warnings, in the order of their position, and
// the last finding says how many were dropped.
func TestLimited(t *testing.T) {
	var all []finding.Finding
	for i := range 3 * printedMax {
		code := "TG411"
		if i == 2*printedMax {
			code = "TG311"
		}
		all = append(all, finding.New(code, "a.go", finding.Range{Line: i + 1, Column: 1}, "", "wrong", ""))
	}
	got := limited(all)
	if len(got) != printedMax+1 || got[printedMax-2].Range.Line != printedMax-1 || got[printedMax-1].Code != "TG311" {
		t.Errorf("%d findings, then %v", len(got), got[printedMax-2:printedMax])
	}
	if last := got[printedMax]; last.Severity != finding.Warning || !strings.HasPrefix(last.Message, "2000 more findings") {
		t.Errorf("the last finding is %v", last)
	}
}
