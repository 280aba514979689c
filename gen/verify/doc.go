// Package verify makes sure of what emit has made before anybody sees it: the
// parts parse and type-check together with the user's files; they are formatted
// as gofmt does and joined. Declarations that differ in names alone are formatted
// once, and functions that do are type-checked once: most of a large topology is
// that.
//
// Types come from where bind has them. Where bind needed none but the syntax of
// the package, verify needs none either: it type-checks against the little of the
// runtime and of the standard library that generated code uses, which stands in
// the folder api and is held against the real packages by a test. So the fast way
// starts no process. What it finds wrong is looked at again with real types.
package verify
