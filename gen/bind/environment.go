package bind

import (
	"bufio"
	"bytes"
	"go/build"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// environment is what the go command would take from its surroundings: variables
// and, below them, the file that "go env -w" writes.
type environment struct {
	list  []string // for child processes
	value map[string]string
}

func newEnvironment(list []string) *environment {
	if list == nil {
		list = os.Environ()
	}
	e := &environment{list: list, value: make(map[string]string)}
	for _, pair := range list {
		if key, value, ok := strings.Cut(pair, "="); ok {
			e.value[key] = value
		}
	}
	e.readFile(e.file())
	return e
}

// file is where the user's defaults for the go command stand.
func (e *environment) file() string {
	if file, ok := e.value["GOENV"]; ok && file != "" {
		if file == "off" {
			return ""
		}
		return file
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(config, "go", "env")
}

func (e *environment) readFile(file string) {
	if file == "" {
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return // mostly there is none
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
}

// context chooses files as the go command does; open serves what was read.
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

// tags are those that GOFLAGS gives.
func (e *environment) tags() []string {
	var tags []string
	for flag := range strings.FieldsSeq(e.value["GOFLAGS"]) {
		flag = strings.TrimPrefix(flag, "-")
		if list, ok := strings.CutPrefix(strings.TrimPrefix(flag, "-"), "tags="); ok {
			tags = strings.FieldsFunc(strings.Trim(list, `"'`), func(r rune) bool { return r == ',' })
		}
	}
	return tags
}

func openBytes(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }
