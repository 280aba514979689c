package nodejs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"v22.18.0\n": true, "v22.23.3\n": true, "v24.0.0\n": true,
		"v22.17.1\n": false, "v20.20.2\n": false, "": false, "22.18.0\n": false, "command not found": false,
	} {
		if got := runsTypeScript(version); got != want {
			t.Errorf("%q runs TypeScript: %t, want %t", version, got, want)
		}
	}
}

// TestInstall uses scripts in the place of npm.
func TestInstall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("npm is a shell script here")
	}
	cache := t.TempDir()
	npm := func(script string) string {
		path := filepath.Join(t.TempDir(), "npm")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o777); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := filepath.Join(t.TempDir(), "package.json")
	if err := os.WriteFile(file, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}

	dir := filepath.Join(cache, "sub", "packages")
	missing := (*missingError)(nil)
	if err := install(npm("echo npm error code ENOTFOUND; exit 1"), dir, "ci", file); !errors.As(err, &missing) {
		t.Errorf("without a network: %v, want a missingError", err)
	}
	if err := install(npm("echo npm error code EINTEGRITY; exit 1"), dir, "ci", file); err == nil || errors.As(err, &missing) || !strings.Contains(err.Error(), "EINTEGRITY") {
		t.Errorf("with a wrong checksum: %v, want a failure that shows the output", err)
	}
	if err := install(npm(`[ "$*" = ci ] && [ -f package.json ] && mkdir node_modules`), dir, "ci", file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Error(err)
	}
	if err := install(npm("exit 1"), dir, "ci", file); err != nil {
		t.Errorf("npm ran although the packages are there: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "sub", "*")); err != nil || len(left) != 1 {
		t.Errorf("the cache has %v, want the packages alone (%v)", left, err)
	}
}
