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
//	links     links that lead to no page or heading
//	index     pages and test cases that no index lists
//	named     tests that pages of the documentation name
//	shown     code in the comments of the emitters
//	idents    identifiers that the compiler makes without ParseIdent
//	imports   imports against the direction of the layers, or of the tiers of the runtime
//	linked    packages that a program links without need
//	promoted  methods of the runtime that are promoted into generated types
//	unused    functions, types, variables, constants and methods that nothing uses
//	rapids    tests that call rapid.Check without speed.Checks
//	decoders  decoders of bytes from a socket or a disk without a fuzz target
//	long      tests with an amount for long runs that .ci/long does not run, and the reverse
//
// It is an error if a check finds nothing to examine. Each check has a small repository in testdata
// that has the mistake.
package main
