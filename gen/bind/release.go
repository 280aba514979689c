package bind

// Done releases the syntax and the types of the package, unless another package imports
// it, so that the packages of a large batch are not all in memory at once. After Done no method of the
// result may be called; its fields remain. Done does nothing after a check that took too
// long, because that check may still use them.
func (r *Result) Done() {
	if r.root == nil || r.loader.failure != nil || r.loader.imports(r.root.path) {
		return
	}
	delete(r.loader.results, r.root.path)
	s := r.root.source
	s.files, s.texts, s.excluded, s.excludedNames, r.reporter.texts = nil, nil, nil, nil, nil
	r.root, r.binder = nil, nil
}

// imports reports whether a listed package or a root imports the package at path.
func (l *loader) imports(path string) bool {
	if l.importedAs == nil {
		l.importedAs = make(map[string]bool)
		for of := range l.listed {
			for _, i := range l.importsOf(of) {
				l.importedAs[i] = true
			}
		}
		for _, r := range l.roots {
			for _, i := range r.imported() {
				l.importedAs[i] = true
			}
		}
	}
	return l.importedAs[path]
}
