// Package reference embeds the pages of the reference that programs read. A section of the
// findings catalogue is the text that `topogen explain` prints for its code.
package reference

import (
	"embed"
	"io/fs"
)

// pages holds one page for each hundred codes: findings/tg1xx.md, findings/tg2xx.md and so on.
//
//go:embed findings/*.md
var pages embed.FS

// Findings returns the pages of the findings catalogue in the order of their codes.
func Findings() []string {
	names, err := fs.Glob(pages, "findings/*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := pages.ReadFile(name)
		if err != nil {
			panic(err) // the page is embedded
		}
		texts[i] = string(text)
	}
	return texts
}
