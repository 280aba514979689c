package pairtests_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// refusedBy returns the codes of the errors that topogen reports for a row.
func (r row) refusedBy() (codes []string) {
	_, findings := spec.Parse("topology.yml", []byte(r.yaml("pairs")))
	for _, f := range findings {
		if f.Severity == finding.Error {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// TestRefusals checks that topogen refuses the combinations in refusals.
func TestRefusals(t *testing.T) {
	for _, x := range refusals {
		for _, r := range x.rows(defaults()) {
			if strings.HasPrefix(x.code, "TG3") { // the finding is about Go code
				r.refusedWithCode(t, x.code)
			} else if codes := r.refusedBy(); !slices.Contains(codes, x.code) {
				t.Errorf("%v gives %q, want %q", x.when, codes, x.code)
			}
		}
	}
}

// TestPairs checks that topogen accepts all other pairs, in the topologies of the array.
func TestPairs(t *testing.T) {
	rows := oneProcess.coveringArray(t, 1)
	for _, r := range rows {
		if codes := r.refusedBy(); len(codes) > 0 {
			t.Errorf("%s refuses %v", codes, r)
		}
	}
	t.Logf("%d topologies have all pairs", len(rows))
}

// refusedWithCode checks that topogen refuses the Go code of a row.
func (r row) refusedWithCode(t *testing.T, code string) {
	t.Helper()
	if speed.IsQuick(t) {
		return
	}
	dir := folder(t)
	_, results := generate(t, dir, []row{r}, 1)
	if !slices.ContainsFunc(results[0].Findings, func(f finding.Finding) bool { return f.Code == code }) {
		t.Errorf("%v does not give %s: %v", r, code, results[0].Findings)
	}
}
