// Package wire is the library of generated codecs. They write and read messages in
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
// Appending to a buffer with room does not allocate. Reading never panics, whatever the
// bytes, and leaves an [*Error] that says where it stopped. Reading allocates at most a
// multiple of the length of the input, with the same factor for all types. For this, a
// length is compared with the remaining input before anything is allocated. An element
// takes at least two bytes of input, or one if the list is packed. Elements whose Go type
// is large for two bytes are charged against the message's [Room], except in states of
// state machines, whose room is [NoRoomLimit]. Appending fails if
// reading would fail. Types that refer to themselves are followed [DepthMax] deep, in both
// directions.
//
// # Limits
//
// After an error the message holds the values that were read before. Methods of the user's
// types (UnmarshalBinary, the methods of a proto.Message) have their own guarantees.
package wire
