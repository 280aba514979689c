package bind

import (
	"maps"
	"slices"
)

// Done lets go of the syntax and the types of the package, unless another one imports
// it: of a large batch not all are held at once. Nothing may be asked of the result
// afterwards; its fields stay. Done does nothing where a check took too long, since that
// may still use them.
func (r *Result) Done() {
	if r.root == nil || r.loader.failure != nil || r.loader.imports(r.root.path) {
		return
	}
	delete(r.loader.results, r.root.path)
	s := r.root.source
	s.files, s.texts, s.leftOut, s.absentees, r.reporter.texts = nil, nil, nil, nil, nil
	r.root, r.binder = nil, nil
}

// imports reports whether a package that was listed, or a root, imports the one at path.
func (l *loader) imports(path string) bool {
	if l.importedAs == nil {
		l.importedAs = make(map[string]bool)
		for of := range l.listed {
			for _, i := range l.importsOf(of) {
				l.importedAs[i] = true
			}
		}
		for of, r := range l.roots {
			for _, i := range slices.AppendSeq(l.importsOf(of), maps.Keys(r.skeleton.aliases)) {
				l.importedAs[i] = true
			}
		}
	}
	return l.importedAs[path]
}
