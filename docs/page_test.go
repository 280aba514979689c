package docs_test

import (
	"fmt"
	"strings"
)

// page is a Markdown file as a script: its blocks of code in order.
type page struct {
	path   string   // relative to the repository
	module string   // the module that the script begins in; "" for an empty folder
	ports  []string // of loopback in its text, in whose place free ones are used
	blocks []block
	lines  []string
}

// block is a fenced block of code. Its info string is a language and settings:
//
//	console             a session: lines after "$ " are commands, the rest is what they print
//	console exit=1      whose last command ends with 1
//	console like=shape  that prints other numbers and words each time, in the same form
//	go, yaml, json …    a whole by itself
//	go file=parser.go   a file of the module, written when the script comes here
//	mermaid of=FILE     the picture that topogen graph draws of a file
//	text, mermaid       no code
type block struct {
	language string
	settings map[string]string
	text     string
	line     int // of its first line of text, from 1
}

// settingsKnown are those that a block may have.
var settingsKnown = map[string]bool{"file": true, "exit": true, "like": true, "of": true}

// parsePage finds the blocks of a page, also within comments: so a page can
// prepare what a reader need not see.
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

func parseInfo(info string) (block, error) {
	words := strings.Fields(info)
	if len(words) == 0 {
		return block{}, fmt.Errorf("the block does not say what it is: go, yaml, console, text …")
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

// command is one command of a console block and what it prints.
type command struct {
	text string
	want []string
	line int // of its first line of output, from 1
}

// commands splits a console block. A command goes on where its line ends in a
// backslash.
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
			return nil, fmt.Errorf("a console block begins with a command: %q", lines[i])
		default:
			last := &list[len(list)-1]
			last.want = append(last.want, lines[i])
		}
	}
	return list, nil
}
