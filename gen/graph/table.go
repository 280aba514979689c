package graph

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"text/tabwriter"
)

// Table returns the graph as two tables for a terminal: a line for each
// processor and one for each edge.
func Table(g Graph) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, strings.TrimPrefix(oneLine(g.Name)+": ", ": ")+g.counts())
	if g.Load != nil {
		fmt.Fprintln(&b, g.Load.words())
	}
	fmt.Fprintln(&b)
	rows := [][]string{{"processor", "type", "instances", "", "busy", "paused", "received", "restarts"}}
	for _, n := range g.Nodes {
		if n.Timer {
			continue
		}
		marks := badges(n)
		if n.Group != "" {
			marks = append(marks, "group "+n.Group)
		}
		row := []string{n.Name, shortType(n.Type), fmt.Sprint(max(n.Instances, 1)), strings.Join(marks, ", "), "", "", "", ""}
		if n.External {
			row[2] = ""
		}
		if l := n.Load; l != nil {
			row[4], row[5], row[6] = l.Busy.String(), l.Paused.String(), l.received()
			if l.Faults != nil {
				row[7] = amount(l.Faults.Restarts)
			}
		}
		rows = append(rows, row)
	}
	table(&b, rows)
	fmt.Fprintln(&b)
	rows = [][]string{{"edge", "message", "", "sent", "queued", "dropped"}}
	for _, e := range g.Edges {
		if !g.joins(e) {
			continue
		}
		message := e.Message
		if e.Reply != "" {
			message += " ← " + e.Reply
		}
		row := []string{g.Nodes[e.From].Name + " -> " + g.Nodes[e.To].Name, message, e.Note, "", "", ""}
		if l := e.Load; l != nil {
			row[3], row[4], row[5] = amount(l.Sent), l.depth(), amount(l.Dropped)
		}
		rows = append(rows, row)
	}
	table(&b, rows)
	return b.Bytes()
}

// table writes rows with aligned columns. It omits columns that are empty in all rows except
// the first.
func table(b *bytes.Buffer, rows [][]string) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	var used []int
	for column := range rows[0] {
		for _, row := range rows[1:] {
			if row[column] != "" {
				used = append(used, column)
				break
			}
		}
	}
	for _, row := range rows {
		for i, column := range used {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, oneLine(row[column]))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // writes to memory
	trimmed := lineEnds.ReplaceAll(b.Bytes(), []byte("\n"))
	b.Reset()
	b.Write(trimmed)
}

// lineEnds matches the spaces at the end of lines, which align empty columns.
var lineEnds = regexp.MustCompile(" +\n")
