// Package graph draws a topology: as Mermaid for a README, as DOT for
// Graphviz, as JSON for tools, as tables for a terminal, and as an SVG picture
// that needs none of these.
//
//	g := graph.FromTopology(topology)
//	os.Stdout.Write(graph.SVG(g))
//
// [WithLoad] colours it by what a running topology has done, as the JSON of its
// Snapshot says.
//
// # Guarantees
//
// Every function is pure and takes a plain value: the same graph gives the same
// bytes on every machine. Lines end in "\n". Names may hold anything (quotes,
// brackets, line breaks, bytes that are not UTF-8) and cannot break out of the
// format they are written in. A snapshot may come from anywhere: its size and
// depth are bounded, and what does not fit the topology is a finding.
//
// In an SVG no two boxes or labels overlap and no line runs through a box or
// through another edge's label, whatever the graph: that follows from how it is
// laid out, and tests compute it.
//
// # Limits
//
// An edge whose ends are not nodes of the graph is left out of pictures. Names
// too long for a box are cut with an ellipsis; the tooltip has them in full.
// Text is measured with a table of glyph widths that is wide enough for common
// sans-serif fonts; a much wider font may touch the border of its box.
//
// Two lines may run on top of each other for a short way where two edges change
// places between the same two rows; that is rare, and a test bounds how rare.
// A thousand processors are drawn in about a second, but less carefully: beyond
// some hundred, no picture of a topology is easy to read.
//
// # Design
//
// The layout is layered (Sugiyama, Tagawa and Toda 1981), and works along the
// flow and across it, so that left to right and top to bottom are the same code;
// [SVG] takes the direction in which the picture fits a page better.
//
//	cycle      which edges run against the flow
//	level      a column for each step of the flow, and one for labels between
//	           two of them; every edge gets a vertex in each column it passes,
//	           and one of those is its label, so labels take part in everything
//	order      the order within each column, for few crossings
//	port       where edges leave and enter their boxes
//	place      the position across, for straight lines: by network simplex, or
//	           for large pictures by relaxing one level after the other
//	track      the bends between two columns, each with a track of its own
//	layout     all of that for each connected part, and the parts on one page
//
// An edge against the flow leaves its source forwards, turns, runs back between
// the boxes and turns again, so that every arrow leaves and enters at the same
// sides. A self edge is the shortest of these.
//
// The arithmetic is in integers throughout: floating point may differ in its
// last bit between machines, and a picture may not.
package graph
