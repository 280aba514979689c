// Package wire measures generated codecs beside what others write and read the
// same messages with: google.golang.org/protobuf, encoding/gob, encoding/json.
//
//	go test ./wire -bench . -benchtime 1s
//
// The code of protobuf is made by protoc-gen-go of the .proto that topogen prints,
// so the tests also show that both read what the other writes. Everything made is
// made anew by go test ./wire -update.
package wire
