package oracle

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// canonical returns JSON in a form in which two texts are equal if they mean the same.
// Objects have sorted keys. Lists that are sets are sorted. Headers that are empty are the
// same as none. The sentence of a refusal and the text of a cursor are free.
func canonical(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "not JSON: " + string(text)
	}
	if r, isObject := v.(object); isObject {
		if _, isText := r["data"].(string); isText {
			r["data"] = "a sentence"
		}
		kind, _ := r["kind"].(string)
		v = normal("data", v, !strings.HasSuffix(kind, ".search"))
	}
	return string(encode(v))
}

// normal returns v, the value of a field, in canonical form. Its lists are sets if unordered
// is set.
func normal(name string, v any, unordered bool) any {
	switch v := v.(type) {
	case object:
		for k, w := range v {
			v[k] = normal(k, w, unordered)
			if o, isObject := w.(object); isObject && len(o) == 0 && k == "headers" {
				delete(v, k)
			}
		}
		if _, isText := v["data"].(string); isText && v["head"] != nil {
			v["data"] = "a sentence" // of the action of a task.fence
		}
		if name == "data" && v["cursor"] != nil {
			v["cursor"] = "a cursor"
		}
	case []any:
		for i := range v {
			v[i] = normal("", v[i], unordered)
		}
		if unordered || name == "resumes" {
			slices.SortFunc(v, func(a, b any) int { return bytes.Compare(encode(a), encode(b)) })
		}
	}
	return v
}

// lines returns a snapshot with a line for each entry.
func lines(snapshot []byte) string {
	var r struct{ Data map[string][]any }
	d := json.NewDecoder(bytes.NewReader(snapshot))
	d.UseNumber()
	if err := d.Decode(&r); err != nil {
		return "not a snapshot: " + string(snapshot)
	}
	var all []string
	for name, entries := range r.Data {
		for _, e := range entries {
			all = append(all, name+" "+string(encode(normal("", e, true))))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
