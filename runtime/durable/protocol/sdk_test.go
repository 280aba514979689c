package protocol

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestRequestsOfTheSDK decodes requests that version 0.11.5 of the npm package
// @resonatehq/sdk has sent, one for each form. The fields that were understood, encoded
// again, must be the fields that the SDK has sent. A fraction of a millisecond is rounded
// up.
func TestRequestsOfTheSDK(t *testing.T) {
	text, err := os.ReadFile("testdata/sdk-requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range bytes.Lines(text) {
		r, err := DecodeRequest(line)
		if err != nil {
			t.Errorf("%v\n%s", err, line)
			continue
		}
		seen[r.Op.Kind()] = true
		whole := strings.NewReplacer("117.3333", "118", "687.7", "688", "1500.5", "1501").Replace(string(line))
		if got, want := sent(t, AppendRequest(nil, &r)), sent(t, []byte(whole)); !reflect.DeepEqual(got, want) {
			t.Errorf("the request\n%s\nwas understood as\n%v", line, got)
		}
	}
	if len(seen) < 15 {
		t.Errorf("the file has requests of %d kinds, want 15", len(seen))
	}
}

// sent returns a request as a tree, without the heads of actions, which have no meaning,
// and without empty objects, which are the same as absent ones.
func sent(t *testing.T, text []byte) any {
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	data := tree["data"].(map[string]any)
	if action, ok := data["action"].(map[string]any); ok {
		delete(action, "head")
	}
	if actions, ok := data["actions"].([]any); ok {
		for _, action := range actions {
			delete(action.(map[string]any), "head")
		}
	}
	return withoutEmpty(tree)
}

func withoutEmpty(tree map[string]any) map[string]any {
	for key, value := range tree {
		if inner, ok := value.(map[string]any); ok && len(withoutEmpty(inner)) == 0 {
			delete(tree, key)
		}
	}
	return tree
}
