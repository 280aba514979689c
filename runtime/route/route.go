package route

import "github.com/cespare/xxhash/v2"

// String returns the index of the instance for a string key, among n instances.
func String[K ~string](key K, n int) int {
	return int(xxhash.Sum64String(string(key)) % uint64(n))
}

// Bytes returns the same index as String for a string with these bytes.
func Bytes[K ~[]byte](key K, n int) int {
	return int(xxhash.Sum64(key) % uint64(n))
}

// Int returns the index of the instance for a signed integer key, which is
// sign-extended to 64 bits, among n instances.
func Int[K ~int | ~int8 | ~int16 | ~int32 | ~int64](key K, n int) int {
	return int(mix(uint64(int64(key))) % uint64(n))
}

// Uint returns the index of the instance for an unsigned integer key, among n
// instances.
func Uint[K ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr](key K, n int) int {
	return int(mix(uint64(key)) % uint64(n))
}

// Bool returns the index of the instance for a bool key, which is hashed as 0 or 1,
// among n instances.
func Bool[K ~bool](key K, n int) int {
	if key {
		return int(mix(1) % uint64(n))
	}
	return int(mix(0) % uint64(n))
}

// ID returns id, or -1 if id is not between 0 and n-1.
func ID[K ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr](id K, n int) int {
	if id < 0 || uint64(id) >= uint64(max(n, 0)) {
		return -1
	}
	return int(id)
}

// mix is the finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014). It is a bijection that spreads consecutive
// keys.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return x
}
