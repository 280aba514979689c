package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/topogen/topogen/gen/graph"
	"github.com/topogen/topogen/internal/test/loopback"
	"github.com/topogen/topogen/spec"
)

// script runs a page in a folder of its own. Commands can change the working folder,
// as in a shell.
type script struct {
	*testing.T
	page    *page
	root    string            // the folder of the script
	dir     string            // the current working folder
	parts   int               // the number of Go blocks that are not files
	toFree  *strings.Replacer // replaces the ports of the page by free ports
	toPage  *strings.Replacer // replaces the free ports by the ports of the page
	replace []change          // the changes that -update writes into the page
}

// change replaces output in a page by the current output of a command.
type change struct {
	line, lines int
	text        []string
}

func (s *script) run() {
	s.root = s.TempDir()
	s.dir = filepath.Join(s.root, "work")
	s.choosePorts()
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		s.Fatal(err)
	}
	if s.page.module != "" {
		s.writeModule(s.dir, s.page.module)
	}
	if s.page.needs == "node" {
		s.provideNode()
	}
	if *update {
		defer s.update()
	}
	for _, b := range s.page.blocks {
		s.block(b)
	}
}

// choosePorts finds a free port for each port of the page, so that several runs of a
// page on one host do not collide.
func (s *script) choosePorts() {
	var toFree, toPage []string
	for i, address := range loopback.Addresses(s, len(s.page.ports)) {
		_, chosen, _ := net.SplitHostPort(address)
		port := s.page.ports[i]
		toFree, toPage = append(toFree, port, chosen), append(toPage, chosen, port)
	}
	s.toFree, s.toPage = strings.NewReplacer(toFree...), strings.NewReplacer(toPage...)
}

// writeModule writes the go.mod that `go get -tool` would write, without a network.
func (s *script) writeModule(dir, module string) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		s.Fatal(err)
	}
	var requires strings.Builder
	for line := range strings.Lines(string(text)) {
		if line[0] == '\t' {
			path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
			version, _, _ = strings.Cut(version, " ")
			fmt.Fprintf(&requires, "\t%s %s // indirect\n", path, version)
		}
	}
	s.write(filepath.Join(dir, "go.mod"), fmt.Sprintf(
		"module %s\n\ngo 1.26.0\n\ntool %s/cmd/topogen\n\nrequire (\n\t%s v0.0.0\n%s)\n\nreplace %s => %s\n",
		module, topogen, topogen, requires.String(), topogen, repository))
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		s.Fatal(err)
	}
	s.write(filepath.Join(dir, "go.sum"), string(sums))
}

func (s *script) write(path, text string) {
	s.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		s.Fatal(err)
	}
}

func (s *script) errorf(line int, format string, args ...any) {
	s.Helper()
	s.Errorf("%s:%d: %s", s.page.path, line, fmt.Sprintf(format, args...))
}

func (s *script) block(b block) {
	if name := b.settings["file"]; name != "" {
		if s.inRepository() {
			s.Fatalf("%s:%d: the script would write into the repository", s.page.path, b.line)
		}
		s.write(filepath.Join(s.dir, name), s.toFree.Replace(b.text))
	}
	switch b.language {
	case "console":
		s.console(b)
	case "go":
		s.goCode(b)
	case "yaml":
		s.yaml(b)
	case "json":
		if !json.Valid([]byte(b.text)) {
			s.errorf(b.line, "the block is not valid JSON")
		}
	case "mermaid":
		s.mermaid(b)
	case "ts":
		if b.settings["file"] == "" || s.page.needs != "node" {
			s.errorf(b.line, "TypeScript must be in a file, on a page that needs node")
		}
	case "text": // a picture or a list, not code
		if strings.HasPrefix(b.text, "$ ") || strings.HasPrefix(b.text, "go ") {
			s.errorf(b.line, "commands must be in a block with the language console")
		}
	default:
		s.errorf(b.line, "no check exists for the language %s of this block", b.language)
	}
}

// console runs the commands of a session, one after the other.
func (s *script) console(b block) {
	commands, err := b.commands()
	if err != nil {
		s.errorf(b.line, "%v", err)
		return
	}
	for i, c := range commands {
		if notRun[c.text] && s.inRepository() {
			s.known(c)
			continue
		}
		exit := 0
		if i == len(commands)-1 && b.settings["exit"] != "" {
			exit, _ = strconv.Atoi(b.settings["exit"])
		}
		out, code := s.command(c.text)
		got := withoutLoad(outputLines(out), c.want)
		if code != exit {
			s.errorf(c.line-1, "%s\nexited with %d, want %d, and printed\n%s", c.text, code, exit, out)
			s.FailNow() // later blocks depend on this command
		}
		want, have := c.want, got
		if b.settings["like"] == "shape" {
			want, have = shapes(want), shapes(have)
		}
		if !matches(want, have) {
			s.replace = append(s.replace, change{c.line - 1, len(c.want), got})
			s.errorf(c.line-1, "%s\nprinted\n%s\nwant\n%s", c.text, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// inRepository reports whether the working folder is the root of the checkout, which
// the script sees as a clone.
func (s *script) inRepository() bool {
	real, err := filepath.EvalSymlinks(s.dir)
	return err == nil && real == repository
}

// outputLines splits the output of a command into lines, without empty lines at the
// end and without the downloads of the go command, which depend on the module cache.
func outputLines(out string) []string {
	out = strings.TrimRight(out, "\n")
	if out == "" {
		return nil
	}
	return slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return strings.HasPrefix(line, "go: downloading ") })
}

// slowHandler is a warning that a program also logs on a busy host.
const slowHandler = "WARN topogen: a handler runs longer than 10 ms"

// withoutLoad removes warnings about slow handlers unless the page shows one.
func withoutLoad(got, want []string) []string {
	warns := func(line string) bool { return strings.Contains(line, slowHandler) }
	if slices.ContainsFunc(want, warns) {
		return got
	}
	return slices.DeleteFunc(got, warns)
}

// known checks a command that is not run: the command must exist, and so must the
// packages in its output.
func (s *script) known(c command) {
	if _, err := os.Stat(filepath.Join(repository, c.text)); err != nil && !strings.HasPrefix(c.text, "go ") {
		s.errorf(c.line-1, "the command %s does not exist", c.text)
	}
	for i, line := range c.want {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "ok" {
			dir := filepath.Join(repository, strings.TrimPrefix(fields[1], topogen))
			if tests, _ := filepath.Glob(filepath.Join(dir, "*_test.go")); len(tests) == 0 {
				s.errorf(c.line+i, "the package %s has no tests", fields[1])
			}
		}
	}
}

// command runs one command in the working folder, and updates the working folder.
func (s *script) command(text string) (out string, code int) {
	at := filepath.Join(s.root, "at")
	cmd := exec.Command("bash", "-c", s.toFree.Replace(text)+"\ncode=$?\npwd >"+at+"\nexit $code")
	cmd.Dir = s.dir
	cmd.Env = append(s.environment(), "PWD="+s.dir)
	for _, variable := range s.page.env {
		cmd.Env = append(cmd.Env, s.toFree.Replace(variable))
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := runGroup(s.T, cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		s.Fatal(err)
	}
	if dir, err := os.ReadFile(at); err == nil {
		s.dir = strings.TrimSpace(string(dir))
	}
	return s.toPage.Replace(output.String()), code
}

// inModule reports whether the working folder has a go.mod.
func (s *script) inModule() bool {
	_, err := os.Stat(filepath.Join(s.dir, "go.mod"))
	return err == nil
}

// goCode checks the format of a Go block. If the block is not a file, and the script
// is in a module, goCode also compiles it as a package of its own, and adds a missing
// package clause and imports. The commands of the page compile files.
func (s *script) goCode(b block) {
	if formatted, err := format.Source([]byte(b.text)); err != nil {
		s.errorf(b.line, "%v", err)
		return
	} else if string(formatted) != b.text {
		s.errorf(b.line, "the block is not formatted; gofmt writes\n%s", formatted)
	}
	if b.settings["file"] != "" || !s.inModule() {
		return
	}
	s.parts++
	dir := filepath.Join(s.dir, fmt.Sprintf("part%d", s.parts))
	text := b.text
	if !strings.HasPrefix(text, "package ") {
		text = "package part\n\n" + text
		file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
		if err != nil {
			s.errorf(b.line, "%v", err)
			return
		}
		if len(file.Imports) == 0 {
			text = strings.Replace(text, "\n\n", "\n\n"+imports(file), 1)
		}
	}
	s.write(filepath.Join(dir, "part.go"), text)
	if out, code := s.command("go vet ./" + filepath.Base(dir)); code != 0 {
		s.errorf(b.line, "%s", out)
	}
	if err := os.RemoveAll(dir); err != nil {
		s.Fatal(err)
	}
}

// importPaths are the packages that a block may use without an import.
var importPaths = []string{
	"context", "errors", "fmt", "net/http", "os", "os/signal", "syscall", "testing", "time",
	topogen + "/runtime/pool", topogen + "/runtime/topo", topogen + "/runtime/queue", topogen + "/runtime/durable",
}

// imports returns import declarations for the packages that a file uses.
func imports(file *ast.File) string {
	mentioned := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				mentioned[x.Name] = true
			}
		}
		return true
	})
	var out strings.Builder
	for _, path := range importPaths {
		if mentioned[filepath.Base(path)] {
			fmt.Fprintf(&out, "import %q\n", path)
		}
	}
	return out.String()
}

// yaml checks a block: a topology must have no findings, and other text must be
// valid YAML.
func (s *script) yaml(b block) {
	if !strings.Contains(b.text, "version: 1\n") {
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(b.text), &node); err != nil {
			s.errorf(b.line, "%v", err)
		}
		return
	}
	_, findings := spec.Parse("topology.yml", []byte(b.text))
	for _, f := range findings {
		s.errorf(b.line+f.Range.Line-1, "%s %s: %s", f.Severity, f.Code, f.Message)
	}
}

// mermaid compares a picture with the output of topogen graph.
func (s *script) mermaid(b block) {
	name := b.settings["of"]
	if name == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.errorf(b.line, "%v", err)
		return
	}
	topology, _ := spec.Parse(name, text)
	if topology == nil {
		s.errorf(b.line, "%s is not a valid topology", name)
		return
	}
	if got := string(graph.Mermaid(graph.FromTopology(topology))); got != b.text {
		lines := outputLines(got)
		s.replace = append(s.replace, change{b.line - 1, strings.Count(b.text, "\n"), lines})
		s.errorf(b.line, "topogen graph %s prints\n%s", name, got)
	}
}

// update writes the current output of commands into the page.
func (s *script) update() {
	if len(s.replace) == 0 {
		return
	}
	lines := slices.Clone(s.page.lines)
	for _, c := range slices.Backward(s.replace) {
		lines = slices.Replace(lines, c.line, c.line+c.lines, c.text...)
	}
	if err := os.WriteFile(filepath.Join(repository, s.page.path), []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		s.Fatal(err)
	}
}
