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

// Windows takes a file with one of these names for a device, whatever its ending.
var deviceNames = strings.Fields(`aux con nul prn com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9`)

var outputElementForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkOutput reports a name for the generated file that leaves the folder, or
// that the go command does not compile everywhere.
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
		return "the output has a backslash", "separate folders with /"
	case path.IsAbs(output):
		return "the output is an absolute path", "write it relative to the topology file"
	case slices.Contains(strings.Split(output, "/"), ".."):
		return "the output leaves the folder of the topology file", `leave ".." out`
	}
	elements := strings.Split(output, "/")
	for _, element := range elements {
		stem, _, _ := strings.Cut(strings.ToLower(element), ".")
		switch {
		case output == "":
			return "the output is empty", "leave it out for " + defaultOutput
		case element == "":
			return "the output has a folder without a name", "write one / between two names"
		case len(element) > nameMax:
			return fmt.Sprintf("the output has a name of more than %d characters", nameMax), "shorten it"
		case !outputElementForm.MatchString(element):
			return fmt.Sprintf("the output has the name %s, which is not made of letters, digits, . _ and -, beginning with a letter or a digit", quoted(element)), ""
		case slices.Contains(deviceNames, stem):
			return fmt.Sprintf("the output has the name %s, which is a device on Windows", quoted(element)), "choose another name"
		case element == "testdata" || element == "vendor":
			return fmt.Sprintf("the go command does not look for packages in %q", element), "choose another folder"
		}
	}
	base := elements[len(elements)-1]
	stem, isGo := strings.CutSuffix(base, ".go")
	if !isGo || stem == "" {
		return "the output " + quoted(base) + " is not a Go file", "let it end with .go"
	}
	words := strings.Split(stem, "_")
	last := words[len(words)-1]
	switch {
	case len(words) > 1 && last == "test":
		return "a Go file whose name ends with _test.go holds tests only", "write " + quoted(strings.TrimSuffix(stem, "_test")+"_gen.go")
	case !Compiled(base, ""):
		return fmt.Sprintf("the go command compiles a file whose name ends with _%s.go only there", last), "write " + quoted(stem+"_gen.go")
	}
	return "", ""
}

// Compiled reports whether the go command compiles a file of that name where the
// architecture is another than all others, or the given one, and so is the system. Package
// build knows the systems and architectures and does not list them: so it is asked.
func Compiled(name, architecture string) bool {
	c := build.Context{Compiler: "gc", GOARCH: architecture, OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package p\n")), nil
	}}
	match, err := c.MatchFile("", name)
	return err == nil && match
}
