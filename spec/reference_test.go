package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// TestReferenceOfNames parses the examples of each kind of name in the reference. A row has a
// column of valid names and a column of invalid ones.
func TestReferenceOfNames(t *testing.T) {
	page := string(read(t, "../docs/reference/topology.md"))
	files := map[string]string{
		"topology":  "version: 1\nname: %s\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
		"processor": "version: 1\nname: demo\nprocessors: {feed: {}, %[1]s: {}}\nedges:\n  - feed -> %[1]s: Raw\n",
		"group":     "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\ngroups: {%s: {processors: [feed]}}\nedges:\n  - feed -> parser: Raw\n",
		"timer":     "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n  - every 1s as %s -> parser\n",
		"message":   "version: 1\nname: demo\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: %s\n",
		"package":   "version: 1\nname: demo\npackage: %s\nprocessors: {feed: {}, parser: {}}\nedges:\n  - feed -> parser: Raw\n",
	}
	_, section, _ := strings.Cut(page, "\n## Names\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| a ([^|]*?) \| [^|]* \| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(section, -1)
	for _, row := range rows {
		for kind := range strings.SplitSeq(row[1], ", ") {
			kind = strings.TrimPrefix(kind, "a ")
			file := files[kind]
			delete(files, kind)
			for i, list := range row[2:] {
				for _, name := range strings.Split(strings.Trim(list, "`"), "`, `") {
					_, findings := Parse("topology.yml", fmt.Appendf(nil, file, name))
					if right := i == 0; right != (len(findings) == 0) {
						t.Errorf("the %s name %s: valid %v, findings %v", kind, name, right, findings)
					}
				}
			}
		}
	}
	if len(files) > 0 {
		t.Errorf("the reference has no row for names of %v", files)
	}
	rule := regexp.MustCompile("`([a-zA-Z_-]+)` is `([A-Za-z]+)`").FindAllStringSubmatch(section, -1)
	if len(rule) < 3 {
		t.Errorf("the rule of camel case has only %d examples", len(rule))
	}
	for _, example := range rule {
		if got := Exported(example[1]); got != example[2] {
			t.Errorf("%s becomes %s, want %s", example[1], got, example[2])
		}
	}
}

// TestReferenceOfDora checks that the rows about keys of dora have the words below, that topology.yml accepts the keys
// that replace them, and that the timers of both have the same period.
func TestReferenceOfDora(t *testing.T) {
	var groups []struct {
		Group string
		Rows  []struct{ What, Here string }
	}
	src := read(t, "../docs/data/dora.yml")
	if err := yaml.Unmarshal(src, &groups); err != nil || len(groups) == 0 || groups[0].Group != "Keys" {
		t.Fatalf("got %v, want a list whose first group is Keys, and the error %v", groups, err)
	}
	for _, word := range []string{"dora/timer/millis/", "dora/timer/secs/", "dora/timer/hz/", "`operators`", "`env", "`path: dynamic`"} {
		if !strings.Contains(string(src), word) {
			t.Errorf("no row has %s", word)
		}
	}
	for _, row := range groups[0].Rows {
		theirs := regexp.MustCompile(`dora/timer/(millis|secs|hz)/(\d+)`).FindAllStringSubmatch(row.What, -1)
		ours := regexp.MustCompile("`(every [^`]*)`").FindAllStringSubmatch(row.Here, -1)
		for i, timer := range theirs {
			topology := parseClean(t, "version: 1\nname: demo\nprocessors: {TO: {}}\nedges:\n  - "+ours[min(i, len(ours)-1)][1]+"\n")
			n, _ := strconv.Atoi(timer[2])
			want := map[string]time.Duration{"millis": time.Duration(n) * time.Millisecond, "secs": time.Duration(n) * time.Second, "hz": time.Second / time.Duration(n)}[timer[1]]
			if got := topology.Edges[0].Every; got != want {
				t.Errorf("%s: %v, want %v", timer[0], got, want)
			}
		}
		for _, key := range regexp.MustCompile("`(\\w+: [^`]*)`").FindAllStringSubmatch(row.Here, -1) {
			parseClean(t, topologyWith(key[1]))
		}
	}
}

// topologyWith returns a topology with a key of the file, of a processor or of an edge.
func topologyWith(key string) string {
	var file, processor, edge string
	switch name, _, _ := strings.Cut(key, ":"); name {
	case "health_check_interval":
		file = key + "\n"
	case "capacity", "input_timeout":
		edge = ", " + key
	case "arm":
		edge = ", input_timeout: 5s, " + key
	case "with":
		processor = "new: New, " + key
	case "external": // it receives no messages
		return "version: 1\nname: demo\nprocessors: {feed: {" + key + "}, to: {}}\nedges:\n  - feed -> to: Raw\n"
	default:
		processor = key
	}
	return "version: 1\nname: demo\n" + file + "processors: {feed: {}, to: {" + processor + "}}\nedges:\n  - feed -> to: {message: Raw" + edge + "}\n"
}
