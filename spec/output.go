package spec

import (
	"fmt"
	"go/build"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/topogen/topogen/spec/finding"
)

// deviceNames are names that Windows reserves for devices, with any extension.
var deviceNames = strings.Fields(`aux con nul prn com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9`)

var outputElementForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkOutput reports a path for the generated file that leaves the folder of the topology file,
// or that the go command does not compile on every system.
func (b *builder) checkOutput(output Text) bool {
	if output.Pointer == "" || b.found.exact[output.Pointer] {
		return output.Pointer == ""
	}
	message, suggestion := outputProblem(output.Value)
	if message != "" {
		b.found.addText(finding.Output, output, message, suggestion)
	}
	return message == ""
}

func outputProblem(output string) (message, suggestion string) {
	switch {
	case strings.ContainsRune(output, '\\'):
		return "output must not contain a backslash, got " + quoted(output), "separate folders with /"
	case path.IsAbs(output):
		return "output must be a relative path, got " + quoted(output), "write it relative to the topology file"
	case slices.Contains(strings.Split(output, "/"), ".."):
		return "output must be in the folder of the topology file or below it, got " + quoted(output), `remove ".."`
	}
	elements := strings.Split(output, "/")
	for _, element := range elements {
		stem, _, _ := strings.Cut(strings.ToLower(element), ".")
		switch {
		case output == "":
			return "output must not be empty", "remove the key, and the file is " + defaultOutput
		case element == "":
			return "output must not have a folder without a name, got " + quoted(output), "write one / between two names"
		case len(element) > nameMax:
			return fmt.Sprintf("a name in output must have at most %d characters, got more", nameMax), "shorten it"
		case !outputElementForm.MatchString(element):
			return "a name in output must be letters, digits, . _ and -, beginning with a letter or a digit, got " + quoted(element), ""
		case slices.Contains(deviceNames, stem):
			return "a name in output must not be a device on Windows, got " + quoted(element), "choose another name"
		case element == "testdata" || element == "vendor":
			return fmt.Sprintf("output must not be in a folder called %s: the go command ignores the packages in it", element), "choose another folder"
		}
	}
	base := elements[len(elements)-1]
	stem, isGo := strings.CutSuffix(base, ".go")
	if !isGo || stem == "" {
		return "output must be a Go file, got " + quoted(base), "write a name that ends with .go"
	}
	words := strings.Split(stem, "_")
	last := words[len(words)-1]
	switch {
	case len(words) > 1 && last == "test":
		return "output must not end with _test.go: such a file holds only tests", "write " + quoted(strings.TrimSuffix(stem, "_test")+"_gen.go")
	case !Compiled(base, ""):
		return fmt.Sprintf("output must not end with _%[1]s.go: the go command compiles such a file only for %[1]s", last), "write " + quoted(stem+"_gen.go")
	}
	return "", ""
}

// Compiled reports whether the go command compiles a file of that name for an unknown system
// and for the given architecture, where "" is an unknown architecture. A file without a system
// or architecture in its name is compiled even then. The list of systems and
// architectures is internal to package build.
func Compiled(name, architecture string) bool {
	c := build.Context{Compiler: "gc", GOARCH: architecture, OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package p\n")), nil
	}}
	match, err := c.MatchFile("", name)
	return err == nil && match
}
