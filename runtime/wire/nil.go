package wire

// Nil is the encoding of a nil pointer where a message is required: in a list, in a
// map, or as the whole message. It has one field with the highest valid number, which
// no message of topogen uses. Other readers skip the field and read an empty message.
const Nil = "\xf8\xff\xff\xff\x0f\x00"

// IsNil reports whether a message is Nil.
func IsNil(b []byte) bool { return string(b) == Nil }
