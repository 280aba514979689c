package table

import (
	"encoding/binary"
	"hash/crc32"
)

// Seal replaces the last four bytes by the checksum of the others.
func Seal(b []byte) []byte {
	body := b[:max(0, len(b)-checksumSize)]
	return binary.LittleEndian.AppendUint32(append([]byte(nil), body...), crc32.Checksum(body, castagnoli))
}
