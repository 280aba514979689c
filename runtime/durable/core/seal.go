package core

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"
)

// Each value ends with a checksum of its table, its key and its body. So a byte that
// flipped on disk, and a value that moved to another key, are detected when they are read.
const sealSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(t Table, key, body []byte) uint32 {
	// the length of the key separates it from the body
	sum := crc32.Update(uint32(t)<<24|uint32(len(key)), castagnoli, key)
	return crc32.Update(sum, castagnoli, body)
}

func appendSeal(body []byte, t Table, key []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, checksum(t, key, body))
}

// unseal returns the body of a value. It panics with a [*CorruptError] if the checksum
// does not match.
func unseal(t Table, key, value []byte) []byte {
	if len(value) < sealSize {
		panic(corrupt(t, key, "the value has no checksum"))
	}
	body := value[:len(value)-sealSize]
	if binary.LittleEndian.Uint32(value[len(body):]) != checksum(t, key, body) {
		panic(corrupt(t, key, "the checksum does not match"))
	}
	return body
}

func sumString(s string) uint64 { return xxhash.Sum64String(s) }
