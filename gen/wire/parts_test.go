package wire_test

import (
	"slices"
	"testing"

	"github.com/topogen/topogen/gen/wire"
)

// TestParts checks which fields are parts: maps with ordered keys, and lists whose elements have
// tags.
func TestParts(t *testing.T) {
	text, number := wire.Elem{Kind: wire.String}, wire.Elem{Kind: wire.Int}
	fields := []wire.Field{
		{Name: "Title", Elem: text},
		{Name: "ByName", Label: wire.Map, Key: &text, Elem: number},
		{Name: "ByID", Label: wire.Map, Key: &number, Elem: text},
		{Name: "ByPair", Label: wire.Map, Key: &wire.Elem{Kind: wire.Nested}, Elem: text},
		{Name: "ByYes", Label: wire.Map, Key: &wire.Elem{Kind: wire.Bool}, Elem: text},
		{Name: "Names", Label: wire.Repeated, Elem: text},
		{Name: "Numbers", Label: wire.Repeated, Elem: number},
		{Name: "Three", Label: wire.Array, Elem: text},
		{Name: "Maybe", Label: wire.Optional, Elem: text},
	}
	s := &wire.Schema{
		Roots: []wire.Root{{"All", 0}, {"Large", 1}, {"List", 2}, {"Proto", 3}, {"None", -1}},
		Messages: []wire.Message{
			{Name: "All", Fields: fields},
			{Name: "Large", Fields: fields, Charged: true},
			{Name: "List", Form: wire.Value, Fields: []wire.Field{{Label: wire.Repeated, Elem: text}}},
			{Name: "Proto", Form: wire.Foreign},
		},
	}
	for root, want := range map[string][]string{"All": {"ByName", "ByID", "Names"}, "Large": {"ByName", "ByID", "Names"}, "List": {""}, "Proto": nil, "None": nil, "other": nil} {
		if got := s.Parts(root); !slices.Equal(got, want) {
			t.Errorf("of %s: %q, want %q", root, got, want)
		}
	}
}
