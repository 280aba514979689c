// Package graph draws a topology: as Mermaid for a README, as DOT for Graphviz, as JSON
// for tools, as tables for a terminal, and as an SVG picture that needs no tool.
//
//	g := graph.FromTopology(topology)
//	os.Stdout.Write(graph.SVG(g))
//
// [WithLoad] colours the graph by the load of a running topology, from the JSON of its
// Snapshot.
//
// # Guarantees
//
// Every function is pure and takes a plain value: the same graph gives the same bytes on
// all systems. Lines end in "\n". Names may contain anything (quotes, brackets, line
// breaks, bytes that are not UTF-8) and are escaped for each format. A snapshot may come
// from an untrusted source: its size and depth are bounded, and parts that do not match
// the topology are findings.
//
// In an SVG no two boxes or labels overlap, and no line runs through a box or through
// another edge's label. The layout guarantees this for all graphs, and tests check it.
//
// # Limits
//
// Pictures omit an edge whose ends are not nodes of the graph. Names that are too long for
// a box are cut with an ellipsis; the tooltip has the full name. Text is measured with a
// table of glyph widths that is wide enough for common sans-serif fonts. Text in a much
// wider font may touch the border of its box.
//
// If two edges exchange places between the same two rows, their lines may overlap for a
// short distance. This is rare, and a test bounds how often it happens. A thousand
// processors are drawn in about a second, but less carefully: with more than about a
// hundred processors, no picture is easy to read.
//
// # Design
//
// The layout is layered (Sugiyama, Tagawa and Toda 1981). Its coordinates are along the
// flow and across it, so that left to right and top to bottom share the same code. [SVG]
// uses the direction in which the picture fits a page better.
//
//	cycle      which edges run against the flow
//	level      a column for each step of the flow, and one for labels between
//	           two of them; every edge has a vertex in each column that it passes,
//	           and one of these is its label, so every step also arranges labels
//	order      the order within each column, for few crossings
//	port       where edges leave and enter their boxes
//	place      the position across, for straight lines: by network simplex, or
//	           for large pictures by relaxing one level after the other
//	track      the bends between two columns, each with its own track
//	layout     all steps for each connected part, and the parts on one page
//
// An edge against the flow leaves its source forwards, turns, runs back between the boxes
// and turns again, so that every arrow leaves and enters at the same sides. A self edge is
// the shortest case.
//
// All arithmetic uses integers, because floating point results may differ in the last bit
// between systems, and pictures must not differ.
package graph
