// Package verify checks generated code before it is written. It parses the parts from
// package emit, type-checks them together with the user's files and their function
// bodies, formats them like gofmt, and joins them.
package verify
