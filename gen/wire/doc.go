// Package wire makes the codecs of messages that cross a border: functions that
// append a message to a buffer and read it from one, in protobuf's wire format.
//
//	schema, problems := wire.Build(pkg, roots)              // of go/types
//	schema, file, more := wire.Assign(schema, old)          // field numbers, kept in topology.wire.yml
//	codecs, code := wire.Emit(&schema, wire.Names{…})       // appendOrder, consumeOrder …
//	text := wire.Proto(&schema, wire.ProtoOptions{…})       // the .proto that describes them
//
// # Guarantees
//
// A [Schema] is a plain value without positions: equal messages give equal
// schemas, the same on every machine. Whatever cannot be encoded is a [Problem]
// with the path to it, all of them in one go, and a schema of messages without
// problems always gives code that compiles in the package that it was built for.
//
// # Design
//
// A field is a label (plain, optional, repeated, array, map) and an element, which
// is a scalar or a message: that is all that protobuf has. What Go can say beyond
// (a list of lists, a pointer to a map) goes through a message that is made up,
// with one field of number 1.
package wire
