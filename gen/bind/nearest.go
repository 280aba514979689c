package bind

import "strings"

// nearHandler is near.Nearest for names of handlers. It ignores their common prefix.
func (b *binder) nearHandler(name string, candidates []string) string {
	short, ok := strings.CutPrefix(name, handlerPrefix)
	if !ok {
		return b.near.Nearest(name, candidates)
	}
	if !b.near.Spend(len(candidates)) {
		return ""
	}
	var alike, others []string
	for _, c := range candidates {
		if rest, ok := strings.CutPrefix(c, handlerPrefix); ok {
			alike = append(alike, rest)
		} else {
			others = append(others, c)
		}
	}
	if near := b.near.Nearest(short, alike); near != "" {
		return handlerPrefix + near
	}
	return b.near.Nearest(name, others)
}
