// Package wire compares generated codecs with google.golang.org/protobuf, encoding/gob
// and encoding/json on the same messages.
//
//	go test ./wire -bench . -benchtime 1s
//
// protoc-gen-go generates the code for protobuf from the .proto file that topogen prints,
// so the tests also show that each reads the output of the other. Run go test ./wire/make
// -update to generate all files again.
package wire
