// Package route maps keys to instances. The mapping is the same on every computer and
// in every release: XXH64 with seed 0 for the bytes of a string, the splitmix64
// finalizer for the 64 bits of an integer or a bool, modulo the number of instances,
// which is at least 1. Test vectors are in docs/reference/routing.md.
package route
