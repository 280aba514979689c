package cache

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Identity is everything but files that a result depends on: the generator, its
// options, the go command and the environment that steers it. The zero Identity
// is unknown, and nothing is fresh under it.
type Identity struct {
	sum   sum
	known bool
}

// Identify returns the identity of this process, with the options that change
// what it writes. It starts no child.
func Identify(options ...string) Identity {
	exe, err := os.Executable()
	if err != nil {
		return Identity{}
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		goCommand = ""
	}
	return identify(exe, goCommand, os.Environ(), options)
}

func identify(exe, goCommand string, environ, options []string) Identity {
	h := sha256.New()
	// Quoted, so that no part can look like two.
	part := func(name, value string) { fmt.Fprintf(h, "%q %q\n", name, value) }

	generator, ok := executable(exe)
	if !ok {
		return Identity{}
	}
	part("generator", generator)
	part("runtime", runtime.Version())
	goroot := ""
	if goCommand != "" {
		if real, err := filepath.EvalSymlinks(goCommand); err == nil {
			goCommand, goroot = real, filepath.Dir(filepath.Dir(real))
		}
		toolchain, _ := executable(goCommand)
		part("go", toolchain)
	}
	goenv := ""
	for _, variable := range steering(environ, goroot) {
		part("env", variable)
		if file, ok := strings.CutPrefix(variable, "GOENV="); ok {
			goenv = file
		}
		if elsewhere(variable) {
			return Identity{}
		}
	}
	if e, ok := observe(GoEnvFile(goenv), false, time.Time{}); ok {
		part("go env", fmt.Sprintf("%x", e.Sum[:]))
		if e.Kind == regular && e.Stat.Size > 0 { // else it may have no end
			if text, err := os.ReadFile(e.Path); err != nil || elsewhere(string(text)) {
				return Identity{}
			}
		}
	}
	for _, option := range options {
		part("option", option)
	}
	id := Identity{known: true}
	h.Sum(id.sum[:0])
	return id
}

// elsewhere reports whether settings have the go command read files that nothing
// else names.
func elsewhere(settings string) bool {
	return strings.Contains(settings, "-overlay") || strings.Contains(settings, "-modfile")
}

// executable tells builds of a program apart. Its content would be surer, and
// reading it takes longer than all the rest together.
func executable(exe string) (string, bool) {
	k, s, err := examine(exe, false)
	if err != nil || k != regular {
		return "", false
	}
	return fmt.Sprintf("%s %+v", exe, s), true
}

// steering returns the variables that change what the go command finds, sorted.
// What go generate sets for its children to the values that hold anyway is left
// out, so that a build under it and one by hand share a record.
func steering(environ []string, goroot string) []string {
	var kept []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case "GOFILE", "GOLINE", "GOPACKAGE", // of the directive
			"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK": // of the runtime
			continue
		case "GOOS":
			if value == runtime.GOOS {
				continue
			}
		case "GOARCH":
			if value == runtime.GOARCH {
				continue
			}
		case "GOROOT":
			if value == goroot {
				continue
			}
		case "CC", "CXX", "PKG_CONFIG", "PKG_CONFIG_PATH": // of packages with cgo
		default:
			if !strings.HasPrefix(name, "GO") && !strings.HasPrefix(name, "CGO_") ||
				strings.HasPrefix(name, "GOOGLE") || strings.HasPrefix(name, "GOTOOLCHAIN_INTERNAL") {
				continue
			}
		}
		if value != "" { // the go command takes empty as unset
			kept = append(kept, variable)
		}
	}
	slices.Sort(kept)
	return kept
}

// GoEnvFile returns where go env -w writes to, by the value of GOENV; "" for nowhere.
func GoEnvFile(goenv string) string {
	switch goenv {
	case "off", os.DevNull:
		return ""
	case "":
		dir, err := os.UserConfigDir()
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "go", "env")
	}
	return goenv
}
