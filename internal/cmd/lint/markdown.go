package main

import (
	"regexp"
	"strings"
)

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	linkEnd  = regexp.MustCompile(`\]\([^)]*\)`)
	newBlock = regexp.MustCompile(`^\s*([-*|>]|\d+\.)`)
)

// textLines returns the lines of a page, with the lines of blocks of code made empty. open is
// the line of a block that is not closed; 0: all blocks are.
func textLines(content string) (lines []string, open int) {
	lines = strings.Split(content, "\n")
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence && open == 0 {
			open = i + 1
		} else if fence {
			open = 0
		}
		if fence || open > 0 {
			lines[i] = ""
		}
	}
	return lines, open
}

// markdown returns the paragraphs, rows and items of a page, without code and headings.
func markdown(file, content string) (found []passage) {
	open := false // whether the line before belongs to the last passage
	lines, _ := textLines(content)
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") { // a heading may begin with What
			open = false
			continue
		}
		text := strings.ReplaceAll(codeSpan.ReplaceAllString(linkEnd.ReplaceAllString(line, "]"), "X"), "**", "")
		if open && !newBlock.MatchString(line) {
			found[len(found)-1].text += " " + text
			continue
		}
		found = append(found, passage{documentation, file, i + 1, strings.TrimLeft(text, "-*> \t")})
		open = true
	}
	return found
}
