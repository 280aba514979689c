package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const logsPage = "docs/reference/logs.md"

// parts are the names of the parts of a program that write log lines, by package below runtime.
var parts = map[string]string{
	"cluster":                 "Nodes of a cluster",
	"cluster/table/broadcast": "Address table with addresses: broadcast",
	"cluster/table/etcd":      "Address table with addresses: etcd",
	"cluster/table/raft":      "Address table with addresses: raft",
	"durable":                 "Executions of durable functions",
	"durable/edges":           "Durable edges of a topology",
	"durable/engine":          "Store of durable promises",
	"durable/replicated":      "Store of durable promises on several nodes",
	"durable/server":          "Durable server",
	"errtop":                  "File of errors",
	"internal/loglimit":       "Lines that come often",
	"member/memberlist":       "Failure detection with detector: memberlist",
	"piper":                   "Processors, queues and the pool",
	"piper/border":            "Messages between nodes",
	"process":                 "Processes of isolated instances",
	"raft":                    "State machines and raft groups",
	"raft/wal":                "Log of a state machine on the disk",
	"transport/certs":         "Certificates",
	"transport/grpc":          "Connections between nodes",
}

// logLine is a line that the runtime writes to its log.
type logLine struct {
	folder, level, text string
	keys                []string
}

// TestLogs compares the list of log lines with the code: `go test ./docs -run TestLogs -update` writes it.
func TestLogs(t *testing.T) {
	all := map[string]logLine{}
	err := filepath.WalkDir(filepath.Join(repository, "runtime"), func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || d.Name() == "testdata" {
			return err
		}
		folder, err := filepath.Rel(filepath.Join(repository, "runtime"), dir)
		if err != nil {
			return err
		}
		lines, err := logLines(dir)
		for _, l := range lines {
			l.folder = filepath.ToSlash(folder)
			if old, ok := all[l.text]; ok {
				l.keys = slices.Compact(slices.Sorted(slices.Values(append(old.keys, l.keys...))))
			}
			all[l.text] = l
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString(`# Log lines

This page is for people who search or alert on the log of a program: the lines that the runtime writes, with their keys. "…" is a part that varies. The logger is ` + "`slog.Default()`" + ` or that of an option or a
field named Logger. Lines that may come often are limited, and ` + "`times`" + ` or the next line says how many there were. The output of an [isolated processor](../howto/isolation.md) is logged line by line.
`)
	folder := ""
	for _, l := range slices.SortedFunc(maps.Values(all), func(a, b logLine) int {
		return strings.Compare(a.folder+"\n"+a.text, b.folder+"\n"+b.text)
	}) {
		if l.folder != folder {
			folder = l.folder
			if parts[folder] == "" {
				t.Errorf("say in parts what runtime/%s is", folder)
			}
			fmt.Fprintf(&out, "\n## %s (runtime/%s)\n\n| level | message | keys |\n|---|---|---|\n", parts[folder], folder)
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", l.level, strings.ReplaceAll(l.text, "|", `\|`), strings.Join(l.keys, ", "))
	}
	if len(all) < 50 {
		t.Errorf("only %d lines were found", len(all))
	}
	compare(t, logsPage, out.String())
}

// levels of methods of slog.Logger. Those of Log and LogAttrs are arguments.
var levels = map[string]string{"Debug": "debug", "Info": "info", "Warn": "warn", "Error": "error", "Log": "varies", "LogAttrs": "varies"}

// wrappers are functions that pass a parameter on as the message of a log line.
type wrappers struct {
	message map[string]int      // the index of the message among the arguments
	keys    map[string][]string // the keys that the function adds
}

// logLines returns the log lines of a package. A function that passes a parameter on as the message
// of a log line is followed to its callers in the package.
func logLines(dir string) (lines []logLine, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	wrappers := wrappers{map[string]int{}, map[string][]string{}}
	for range 3 { // a wrapper may have a wrapper
		for _, f := range parsed {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					addWrapper(wrappers, fn)
				}
			}
		}
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			var list []ast.Expr
			var more []string
			switch n := n.(type) {
			case *ast.CallExpr:
				list, more = n.Args, wrappers.keys[nameOf(n.Fun)]
				if message, level := messageOf(n, wrappers); message != nil {
					lines = appendLine(lines, level, message, n.Args, more)
					list = nil
				}
			case *ast.CompositeLit: // line{slog.LevelWarn, "message", …}
				list = n.Elts
			case *ast.AssignStmt: // level, text := slog.LevelWarn, "message"
				list = n.Rhs
			}
			for i := range len(list) - 1 {
				if level := levelOf(list[i]); level != "" {
					lines = appendLine(lines, level, list[i+1], list, more)
				}
			}
			return true
		})
	}
	return lines, nil
}

// addWrapper adds a function that passes one of its parameters to a log line.
func addWrapper(wrappers wrappers, fn *ast.FuncDecl) {
	index := map[string]int{}
	for _, field := range fn.Type.Params.List {
		for _, name := range field.Names {
			index[name.Name] = len(index)
		}
		if s, ok := field.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Level" {
			wrappers.keys[fn.Name.Name] = slogKeys(fn.Body)
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		message, _ := messageOf(c, wrappers)
		if b, ok := message.(*ast.BinaryExpr); ok { // "prefix: " + text
			message = b.Y
		}
		if id, ok := message.(*ast.Ident); ok {
			if i, ok := index[id.Name]; ok {
				wrappers.message[fn.Name.Name] = i
				wrappers.keys[fn.Name.Name] = slogKeys(fn.Body)
			}
		}
		return true
	})
}

// nameOf returns the name of a function or a method.
func nameOf(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// messageOf returns the argument that is the message of a log line, and the level.
func messageOf(c *ast.CallExpr, wrappers wrappers) (message ast.Expr, level string) {
	name, at := nameOf(c.Fun), 0
	level, method := levels[name]
	if _, selected := c.Fun.(*ast.SelectorExpr); !method || !selected {
		i, ok := wrappers.message[name]
		if !ok {
			return nil, ""
		}
		at, level = i, "varies"
	} else if name == "Log" || name == "LogAttrs" {
		at = 2
	}
	if at >= len(c.Args) {
		return nil, ""
	}
	for _, arg := range c.Args {
		if l := levelOf(arg); l != "" {
			level = l
		}
	}
	return c.Args[at], level
}

// levelOf returns the level of an expression such as slog.LevelWarn, or "".
func levelOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Level") {
		return strings.ToLower(strings.TrimPrefix(s.Sel.Name, "Level"))
	}
	return ""
}

// slogKeys returns the keys of all attributes in an expression or a function: slog.String("key", value).
func slogKeys(in ast.Node) (keys []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) != 2 {
			return true
		}
		if f, ok := c.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(f.X) == "slog" {
			if key := textOf(c.Args[0]); key != "" {
				keys = append(keys, key)
			}
		}
		return true
	})
	return keys
}

// appendLine appends the log line of a message, if it is a literal. more has further keys.
func appendLine(lines []logLine, level string, message ast.Expr, list []ast.Expr, more []string) []logLine {
	text := textOf(message)
	if len(text) < 10 || !strings.Contains(text, " ") || strings.Contains(text, "%w") {
		return lines
	}
	l := logLine{level: level, text: text}
	rest := list[slices.Index(list, message)+1:]
	for i, arg := range rest {
		if lit, ok := arg.(*ast.BasicLit); ok && i%2 == 0 { // "key", value
			l.keys = append(l.keys, textOf(lit))
		}
		l.keys = append(l.keys, slogKeys(arg)...)
	}
	l.keys = slices.Compact(slices.Sorted(slices.Values(append(l.keys, more...))))
	return append(lines, l)
}

// textOf returns a text with "…" for the parts that vary; "" if it has no literal.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return verbs.Replace(text)
	case *ast.BinaryExpr:
		x, y := textOf(e.X), textOf(e.Y)
		if x == "" && y == "" {
			return ""
		}
		return strings.ReplaceAll(orDots(x)+orDots(y), "……", "…")
	case *ast.CallExpr: // fmt.Sprintf("format", …)
		if len(e.Args) > 0 {
			return textOf(e.Args[0])
		}
	}
	return ""
}

var verbs = strings.NewReplacer("%v", "…", "%s", "…", "%d", "…", "%q", "…")

func orDots(text string) string {
	if text == "" {
		return "…"
	}
	return text
}
