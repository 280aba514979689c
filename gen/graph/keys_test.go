package graph

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeysOfJSONAreDocumented compares the table of keys in the reference with the output of
// JSON.
func TestKeysOfJSONAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### JSON of graph\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\.[^|]*)` \\|").FindAllStringSubmatch(section, -1) {
		documented = append(documented, strings.Split(row[1], "`, `")...)
	}
	slices.Sort(documented)
	keys := slices.Sorted(slices.Values(keysOf("", reflect.TypeFor[Graph]())))
	if diff := cmp.Diff(keys, documented); diff != "" {
		t.Errorf("(-written +documented):\n%s", diff)
	}
}

// keysOf lists the keys of an object as jq writes their paths.
func keysOf(path string, t reflect.Type) []string {
	if t == reflect.TypeFor[NodeLoad]() { // which writes itself
		t = reflect.TypeFor[jsonNodeLoad]()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return keysOf(path, t.Elem())
	case reflect.Slice:
		return keysOf(path+"[]", t.Elem())
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return nil
		}
	default:
		return nil
	}
	var keys []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		keys = append(keys, path+"."+name)
		keys = append(keys, keysOf(path+"."+name, t.Field(i).Type)...)
	}
	return keys
}
