// Package process runs an instance of a processor in a process of its own: the
// mechanism of `isolation: process`.
package process
