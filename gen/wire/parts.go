package wire

import "slices"

// Parts lists the fields of a state that may be written in several pieces, because its
// Consume function adds entries to them. A single "" stands for the root itself.
func (s *Schema) Parts(root string) (names []string) {
	at := slices.IndexFunc(s.Roots, func(r Root) bool { return r.Name == root && r.Message >= 0 })
	if at < 0 {
		return nil
	}
	m := &s.Messages[s.Roots[at].Message]
	if m.Form != Struct && m.Form != Value {
		return nil
	}
	for i := range m.Fields {
		f := &m.Fields[i]
		switch {
		case f.Label == Map && (f.Key.Kind == Int || f.Key.Kind == Uint || f.Key.Kind == String),
			f.Label == Repeated && !f.Elem.Packed():
			names = append(names, f.Name)
		}
	}
	return names
}
