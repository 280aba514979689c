package wire

// Nil is the message that stands for a nil pointer where a message has to be: in
// a list, in a map, or as the whole. It has one field, of the highest number that
// there is, which no message of ours has. Others skip it and read an empty
// message.
const Nil = "\xf8\xff\xff\xff\x0f\x00"

// IsNil reports whether a message is Nil.
func IsNil(b []byte) bool { return string(b) == Nil }
