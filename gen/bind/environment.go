package bind

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/build"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/topogen/topogen/gen/cache"
)

// environment has the settings of the go command: environment variables and, with lower
// priority, the file that "go env -w" writes.
type environment struct {
	list    []string // for child processes
	value   map[string]string
	flags   []string // from the command line; they override GOFLAGS
	failure error    // the settings file could block the go command forever
}

func newEnvironment(list []string, flags ...string) *environment {
	if list == nil {
		list = os.Environ()
	}
	e := &environment{list: list, value: make(map[string]string), flags: flags}
	for _, pair := range list {
		if key, value, ok := strings.Cut(pair, "="); ok {
			e.value[key] = value
		}
	}
	e.failure = e.readFile(cache.GoEnvFile(e.value["GOENV"]))
	return e
}

// buildFlags returns the environment and flags for go/packages. It moves -modfile from
// GOFLAGS to the flags, because go/packages also calls the go command without modules,
// and that call refuses the flag.
func (e *environment) buildFlags(list []string) (env, flags []string) {
	var rest []string
	fields, err := splitFlags(e.value["GOFLAGS"])
	for _, flag := range fields {
		if _, ok := flagValue(flag, "modfile"); ok {
			flags = append(flags, flag)
		} else {
			rest = append(rest, flag)
		}
	}
	if err == nil && flags != nil {
		list = append(list[:len(list):len(list)], "GOFLAGS= "+joinFlags(rest)) // an empty value would select the settings of go env -w
	}
	return list, append(flags, e.flags...)
}

// withTempFolder returns an environment in which the go command uses its own folder for
// temporary files. remove deletes the folder, because a go command that is killed leaves files.
func (e *environment) withTempFolder() (list []string, remove func()) {
	dir, err := os.MkdirTemp(e.value["GOTMPDIR"], "topogen")
	if err != nil {
		return e.list, func() {} // the go command will report the error
	}
	return append(e.list[:len(e.list):len(e.list)], "GOTMPDIR="+dir), func() { os.RemoveAll(dir) }
}

func (e *environment) readFile(file string) error {
	data, err := readRegular(file)
	if _, ok := errors.AsType[unbounded](err); ok {
		return fmt.Errorf("cannot read the settings of the go command from GOENV: %w", err)
	}
	if err != nil {
		return nil // usually there is no such file
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), "=")
		if ok && strings.HasPrefix(key, "GO") || key == "CGO_ENABLED" {
			if e.value[key] == "" {
				e.value[key] = value
			}
		}
	}
	return nil
}

// context chooses files as the go command does. open returns contents that were read before.
func (e *environment) context(open func(string) (io.ReadCloser, error)) *build.Context {
	c := build.Default
	c.OpenFile = open
	if v := e.value["GOOS"]; v != "" {
		c.GOOS = v
	}
	if v := e.value["GOARCH"]; v != "" {
		c.GOARCH = v
	}
	switch e.value["CGO_ENABLED"] {
	case "0":
		c.CgoEnabled = false
	case "1":
		c.CgoEnabled = true
	}
	c.BuildTags = append(c.BuildTags[:len(c.BuildTags):len(c.BuildTags)], e.tags()...)
	return &c
}

// tags returns the build tags of the last flag -tags, on the command line or in GOFLAGS, and the
// build tags of the sanitizers that are on.
func (e *environment) tags() (tags []string) {
	flags, _ := splitFlags(e.value["GOFLAGS"]) // the go command reports the error
	on := make(map[string]bool)
	for _, flag := range slices.Concat(flags, e.flags) {
		if value, ok := flagValue(flag, "tags"); ok {
			tags = tagsOf(value)
		}
		for _, tag := range sanitizers {
			if value, ok := boolFlag(flag, tag); ok {
				on[tag] = value
			}
		}
	}
	for _, tag := range sanitizers {
		if on[tag] {
			tags = append(tags, tag)
		}
	}
	return tags
}

// sanitizers are the flags of the go command that also set a build tag.
var sanitizers = []string{"race", "msan", "asan"}

func openBytes(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }
