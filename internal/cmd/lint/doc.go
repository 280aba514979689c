// Command lint checks the text and the source of the repository without running them.
//
//	go run ./internal/cmd/lint
//	go run ./internal/cmd/lint -v -run 'prose|links'
//
// Each check returns findings, which are printed as file:line: message. The exit status is
// 1 if there are findings, and 2 if a check could not read the repository. -v also prints
// the time and the figures of each check. -run selects checks by a regular expression:
//
//	prose     sentences that most readers read twice
//	source    references to the document that the runtime was modelled on
//	links     links between pages, and to headings
//	index     pages and test cases that no index lists
//	proofs    tests that the tables of promises name
//	shown     code in the comments of the emitters
//	idents    identifiers that the compiler makes without ParseIdent
//	imports   imports between the parts of the repository, and between tiers of the runtime
//	linked    packages that a program links
//	promoted  methods of the runtime that are promoted into generated types
//	unused    functions, types, variables, constants and methods that nothing uses
//	rapids    tests that call rapid.Check without speed.Checks
//	long      tests with an amount for long runs that .ci/long does not run
//
// A check that finds nothing to examine is an error.
//
// Each check has a file here, and a small repository in testdata that has the mistake.
package main
