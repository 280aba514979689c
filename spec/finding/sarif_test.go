package finding

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestSARIFIsValid checks the output with the schema of the standard, and the references between
// its parts.
func TestSARIFIsValid(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat = true
	schema, err := compiler.Compile("testdata/sarif.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	every := printerFindings
	for _, code := range Codes() {
		every = append(every, New(code, "dir with blanks/ü\u202e#?.yml", Range{}, "", "said", "do"))
	}
	for name, findings := range map[string][]Finding{"none": nil, "all": every} {
		var out bytes.Buffer
		if err := WriteSARIF(&out, findings, "/home/ann/shop"); err != nil {
			t.Fatal(err)
		}
		var any any
		var log sarifLog
		if err := json.Unmarshal(out.Bytes(), &any); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(any); err != nil {
			t.Errorf("%s: %#v", name, err)
		}
		if err := json.Unmarshal(out.Bytes(), &log); err != nil || len(log.Runs) != 1 || len(log.Runs[0].Results) != len(findings) {
			t.Fatal(err, len(log.Runs))
		}
		run := log.Runs[0]
		for _, r := range run.Results {
			if r.RuleIndex >= len(run.Tool.Driver.Rules) || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || len(r.Locations) != 1 {
				t.Errorf("%s: %+v", name, r)
			}
			if at := r.Locations[0].Physical.Region; at != nil && (at.EndLine < at.StartLine || at.EndLine == at.StartLine && at.EndColumn < at.StartColumn) {
				t.Errorf("%s: the region %+v is invalid", name, *at)
			}
		}
	}
}
