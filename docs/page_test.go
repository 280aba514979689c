package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// page is a Markdown file as a script: its blocks of code, in order.
type page struct {
	path   string   // relative to the repository
	module string   // the module in which the script starts; "" for an empty folder
	ports  []string // loopback ports in its text, which are replaced by free ones
	env    []string // environment variables of its commands, NAME=VALUE
	needs  string   // "node" for a page that runs TypeScript
	blocks []block
	lines  []string
}

// block is a fenced block of code. Its info string is a language and settings:
//
//	console             a session: lines with "$ " are commands, other lines are their output
//	console exit=1      a session whose last command exits with 1
//	console like=shape  a session with other numbers and words each time, in the same form
//	go, yaml, json …    text that is checked on its own
//	go file=parser.go   a file of the module, written at this point of the script
//	ts file=worker.ts   the same in TypeScript, which commands of the page run
//	mermaid of=FILE     the picture that topogen graph draws of a file
//	text, mermaid       text that is not checked
type block struct {
	language string
	settings map[string]string
	text     string
	line     int // the line number of its first line of text, from 1
}

// settingsKnown are the settings that a block may have.
var settingsKnown = map[string]bool{"file": true, "exit": true, "like": true, "of": true}

// parsePage finds the blocks of a page, also in comments, so that a page can prepare
// files that a reader does not need to see.
func parsePage(path string, src []byte) (*page, error) {
	p := &page{path: path, lines: strings.Split(string(src), "\n")}
	for i := 0; i < len(p.lines); i++ {
		line := p.lines[i]
		if module, ok := strings.CutPrefix(line, "<!-- module: "); ok {
			p.module = strings.TrimSuffix(module, " -->")
		}
		if ports, ok := strings.CutPrefix(line, "<!-- ports: "); ok {
			p.ports = strings.Fields(strings.TrimSuffix(ports, " -->"))
		}
		if env, ok := strings.CutPrefix(line, "<!-- environment: "); ok {
			p.env = strings.Fields(strings.TrimSuffix(env, " -->"))
		}
		if needs, ok := strings.CutPrefix(line, "<!-- needs: "); ok {
			p.needs = strings.TrimSuffix(needs, " -->")
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		info, ok := strings.CutPrefix(line[len(indent):], "```")
		if !ok {
			continue
		}
		b, err := parseInfo(info)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		b.line = i + 2
		var text strings.Builder
		for i++; ; i++ {
			if i == len(p.lines) {
				return nil, fmt.Errorf("%s:%d: the block is not closed", path, b.line-1)
			}
			if p.lines[i] == indent+"```" {
				break
			}
			text.WriteString(strings.TrimPrefix(p.lines[i], indent) + "\n")
		}
		b.text = text.String()
		p.blocks = append(p.blocks, b)
	}
	return p, nil
}

// buildPattern matches commands that build a program.
var buildPattern = regexp.MustCompile(`\b(go (build|install|run|test|vet|generate)|topogen run)\b`)

// programs estimates how many programs the page builds, which take most of its time.
func (p *page) programs() (n int) {
	for _, b := range p.blocks {
		if b.language == "console" {
			n += len(buildPattern.FindAllString(b.text, -1))
		}
	}
	return n
}

// installs reports whether the page itself installs commands of the repository.
func (p *page) installs() bool {
	return slices.ContainsFunc(p.blocks, func(b block) bool {
		return b.language == "console" && strings.Contains(b.text, "go install ./cmd/")
	})
}

func parseInfo(info string) (block, error) {
	words := strings.Fields(info)
	if len(words) == 0 {
		return block{}, fmt.Errorf("a block must name its language: go, yaml, console, text …")
	}
	b := block{language: words[0], settings: make(map[string]string)}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok || !settingsKnown[name] {
			return b, fmt.Errorf("the block has an unknown setting %q", word)
		}
		b.settings[name] = value
	}
	return b, nil
}

// command is one command of a console block with its expected output.
type command struct {
	text string
	want []string
	line int // the line number of its first line of output, from 1
}

// commands splits a console block. A command continues on the next line if its line
// ends with a backslash.
func (b block) commands() ([]command, error) {
	var list []command
	lines := strings.Split(strings.TrimSuffix(b.text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		text, ok := strings.CutPrefix(lines[i], "$ ")
		switch {
		case ok:
			for strings.HasSuffix(text, "\\") && i+1 < len(lines) {
				i++
				text += "\n" + lines[i]
			}
			list = append(list, command{text: text, line: b.line + i + 1})
		case len(list) == 0:
			return nil, fmt.Errorf("a console block must begin with a command, got %q", lines[i])
		default:
			last := &list[len(list)-1]
			last.want = append(last.want, lines[i])
		}
	}
	return list, nil
}
