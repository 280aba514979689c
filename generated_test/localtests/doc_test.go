// Package localtests_test runs the golden cases that need one node and no disk. The file
// CASE_test.go tests the case in ../CASE, and the names of its tests begin with that of the
// case. Each case is one program to link less than with a test package of its own.
package localtests_test
