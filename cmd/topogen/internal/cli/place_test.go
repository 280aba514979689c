package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topogen/topogen/schemas"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/templates"
)

func TestNameOf(t *testing.T) {
	for folder, want := range map[string]string{
		"orders": "orders", "My Shop": "my-shop", "line_parser": "line-parser", "2024": "topology-2024",
		"": "topology", "..": "topology", "größe": "gr-e", "a": "a", strings.Repeat("x", 200): strings.Repeat("x", nameMax),
	} {
		if got := nameOf(folder); got != want {
			t.Errorf("%q becomes %q, want %q", folder, got, want)
		}
	}
}

// FuzzNameOf: a topology that init creates has no findings, for any name of the folder.
func FuzzNameOf(f *testing.F) {
	for _, folder := range []string{"orders", "type", "func", "main", "-", "日本", "a\x00b", "init", "string"} {
		f.Add(folder)
	}
	f.Fuzz(func(t *testing.T, folder string) {
		name := nameOf(folder)
		files, err := templates.Project("pipeline", templates.Values{Name: name, Package: packageOf("", name), Schema: schemas.Topology})
		if err != nil {
			t.Fatalf("%q: %v", folder, err)
		}
		for _, file := range files {
			if file.Name == "topology.yml" {
				if _, findings := spec.Parse(file.Name, file.Text); len(findings) > 0 {
					t.Fatalf("%q: %v", folder, findings)
				}
			}
		}
	})
}

func TestPackageOf(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"orders": "orders", "my-shop": "myshop", "type": "typetopology", "main": "maintopology"} {
		if got := packageOf(dir, name); got != want {
			t.Errorf("%s becomes package %s, want %s", name, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte("package shop\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := packageOf(dir, "orders"); got != "shop" {
		t.Errorf("the folder contains package shop, got package %s", got)
	}
}

func TestModulePathOf(t *testing.T) {
	for text, want := range map[string]string{
		"module example.com/a\n": "example.com/a", "// module x\n\nmodule \"example.com/b\" // c\n": "example.com/b", "go 1.26\n": "",
	} {
		if got := modulePathOf([]byte(text)); got != want {
			t.Errorf("%q is module %q, want %q", text, got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for path, want := range map[string]string{
		"shop/orders": "shop/orders", "größe": "größe", "my shop": "'my shop'", "a'b": `'a'\''b'`, "$(x)": "'$(x)'", "-x": "./-x", "a\x1b[0m": `"a\x1b[0m"`,
	} {
		if got := shellWord(path); got != want && filepath.Separator == '/' {
			t.Errorf("%q becomes %s, want %s", path, got, want)
		}
	}
}

func TestStubStem(t *testing.T) {
	for name, want := range map[string]string{"LineParser": "lineparser", "Foo_test": "footest", "Foo_linux": "foolinux"} {
		if got := stubStem(name); got != want {
			t.Errorf("type %s is written to %s.go, want %s.go", name, got, want)
		}
	}
}

func TestDevice(t *testing.T) {
	for name, want := range map[string]bool{
		"con": true, "Aux": true, "nul.x": true, "com1": true, "LPT9.a.b": true,
		"com": false, "com0": false, "com10": false, "console": false, "1": false, "x.con": false, "xyz1": false,
	} {
		if device(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}
