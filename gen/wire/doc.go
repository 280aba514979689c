// Package wire generates codecs for messages that are sent to other processes or written
// to logs: functions that append a message to a buffer and read it from a buffer, in
// protobuf's wire format.
//
//	schema, problems := wire.Build(pkg, roots)              // of go/types
//	schema, file, more := wire.Assign(schema, old)          // field numbers, kept in topology.wire.yml
//	codecs, code := wire.Emit(&schema, wire.Names{…})       // appendOrder, consumeOrder …
//	text := wire.Proto(&schema, wire.ProtoOptions{…})       // the .proto that describes them
//
// # Guarantees
//
// A [Schema] is a plain value without positions: equal messages give equal schemas on all
// systems. Build reports every type that cannot be encoded as a [Problem] with its path.
// The code for a schema without problems always compiles in the package for which the
// schema was built.
//
// # Design
//
// A field consists of a label (plain, optional, repeated, array, map) and an element, which
// is a scalar or a message. Protobuf has no other forms. Other Go types, such as a list of
// lists or a pointer to a map, are encoded as a wrapper message with one field, number 1.
package wire
