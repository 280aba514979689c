// Package wire is what generated codecs call: they write and read messages in
// protobuf's wire format, without reflection and without a descriptor.
//
//	func appendOrder(b []byte, m *Order) ([]byte, error) {
//		if m.Account != "" {
//			b = append(b, 0x0a) // Account = 1
//			b = wire.AppendString(b, m.Account)
//		}
//		return b, nil
//	}
//
//	func consumeOrder(b []byte, m *Order) error {
//		r := wire.Read(b)
//		for r.Next() {
//			switch r.Tag {
//			case 0x0a:
//				wire.String(&r, &m.Account)
//			default:
//				r.Skip()
//			}
//		}
//		return r.End("Order", "1 Account")
//	}
//
// # Guarantees
//
// Appending into a buffer with room allocates nothing. Reading never panics,
// whatever the bytes, and leaves an [*Error] that says where it stopped. What it
// allocates is bounded by a multiple of the length of the input that is the same
// for all types: a length is held against the bytes that are left before anything
// is made for it, an element takes two bytes at least (one where it is packed), and
// those that are large for two bytes are charged against the message's [Room].
// Appending fails where reading would. What refers to itself is followed [DepthMax] deep, in both directions.
//
// # Limits
//
// After an error the message holds what was read until then. Methods of users'
// own (UnmarshalBinary, those of a proto.Message) make their own promises.
package wire
