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

// Identity identifies everything that determines a result, except for the input files: the
// generator, its options, the go command and its environment variables. The zero Identity is
// unknown; with it no build is fresh.
type Identity struct {
	sum   sum
	known bool
}

// Identify returns the identity of this process with the options that change its output.
// It starts no child process.
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
	// The parts are quoted so that the boundary between them is unambiguous.
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
	for _, variable := range goVariables(environ, goroot) {
		part("env", variable)
		if file, ok := strings.CutPrefix(variable, "GOENV="); ok {
			goenv = file
		}
		if readsOtherFiles(variable) {
			return Identity{}
		}
	}
	if e, ok := observe(GoEnvFile(goenv), false, time.Time{}); ok {
		part("go env", fmt.Sprintf("%x", e.Sum[:]))
		if e.Kind == regular && e.Stat.Size > 0 { // other files may have no end
			if text, err := os.ReadFile(e.Path); err != nil || readsOtherFiles(string(text)) {
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

// readsOtherFiles reports whether settings make the go command read files that the cache
// does not know.
func readsOtherFiles(settings string) bool {
	return strings.Contains(settings, "-overlay") || strings.Contains(settings, "-modfile")
}

// executable distinguishes builds of a program. Its contents would be more reliable, but
// reading them takes longer than everything else together.
func executable(exe string) (string, bool) {
	k, s, err := examine(exe, false)
	if err != nil || k != regular {
		return "", false
	}
	return fmt.Sprintf("%s %+v", exe, s), true
}

// goVariables returns the variables that change the results of the go command, sorted. It
// omits variables that go generate sets to their default values, so that a build by go
// generate and one by hand share a record.
func goVariables(environ []string, goroot string) []string {
	var kept []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case "GOFILE", "GOLINE", "GOPACKAGE", // about the directive
			"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK": // settings of the Go runtime
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
		case "CC", "CXX", "PKG_CONFIG", "PKG_CONFIG_PATH": // for packages with cgo
		default:
			if !strings.HasPrefix(name, "GO") && !strings.HasPrefix(name, "CGO_") ||
				strings.HasPrefix(name, "GOOGLE") || strings.HasPrefix(name, "GOTOOLCHAIN_INTERNAL") {
				continue
			}
		}
		if value != "" { // the go command treats empty as unset
			kept = append(kept, variable)
		}
	}
	slices.Sort(kept)
	return kept
}

// GoEnvFile returns the file that go env -w writes for a value of GOENV; "" if there is none.
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
