// Package route turns keys into instances. The mapping is the same on every
// machine and in every release: XXH64 with seed 0 over the bytes of a string,
// the splitmix64 finalizer over an integer's or a bool's 64 bits, modulo the
// number of instances, which is at least 1 (test vectors in
// docs/reference/routing.md).
package route
