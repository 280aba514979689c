package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/topogen/topogen/bench/suite"
)

// peers are the modules whose versions are named on the page.
var peers = []string{
	"github.com/asynkron/protoactor-go", "github.com/ThreeDotsLabs/watermill", "github.com/puzpuzpuz/xsync/v4",
}

// markdown writes the goals, followed by the tables with the results.
func markdown(sections []suite.Section, rounds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s/%s, %d CPUs, %d rounds%s.\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), rounds, versions())
	b.WriteString("\n### Goals\n\n")
	var goals [][]string
	for _, s := range sections {
		for _, c := range s.Claims {
			holds := "yes"
			if !c.Holds {
				holds = "**no**"
			}
			goals = append(goals, []string{c.What, c.Goal, c.Reached, holds})
		}
	}
	table(&b, []string{"", "goal", "measured", "met"}, goals)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n", s.Title)
		if s.Note != "" {
			b.WriteString(s.Note + "\n\n")
		}
		table(&b, s.Columns, s.Rows)
	}
	return b.String()
}

// table writes a table whose first column is aligned left and whose other columns are
// aligned right.
func table(b *strings.Builder, columns []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)-1))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, d := range info.Deps {
		for _, peer := range peers {
			if d.Path == peer {
				fmt.Fprintf(&b, ", %s %s", strings.TrimPrefix(d.Path, "github.com/"), d.Version)
			}
		}
	}
	return b.String()
}

// The markers are on separate lines.
const (
	begin = "<!-- tables: begin; made by bench/cmd/table -->\n"
	end   = "<!-- tables: end -->\n"
)

// replace replaces the text between the markers of a page.
func replace(page, text string) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(content), begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return errors.New("the markers of the tables are missing in " + page)
	}
	return os.WriteFile(page, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644)
}
