package graph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKeysOfJSONAreDocumented compares the words of the doc comment of JSON with its output. The counters of
// failures are those of a snapshot.
func TestKeysOfJSONAreDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "json.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool { f, ok := d.(*ast.FuncDecl); return ok && f.Name.Name == "JSON" })
	words := regexp.MustCompile(`\w+`).FindAllString(file.Decls[i].(*ast.FuncDecl).Doc.Text(), -1)
	for _, key := range keysOf("", reflect.TypeFor[Graph]()) {
		if name := key[strings.LastIndex(key, ".")+1:]; !strings.Contains(key, ".faults.") && !slices.Contains(words, name) {
			t.Errorf("the comment of JSON lacks %s", key)
		}
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
