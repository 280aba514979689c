// Package protocol holds the requests, responses, records and messages of Resonate's
// protocol for durable promises, version 2026-04-01, and their JSON form.
//
// A request is a JSON object with a kind, a head and data:
//
//	{"kind":"promise.get","head":{"corrId":"1","version":"2026-04-01"},"data":{"id":"order-17"}}
//
// [DecodeRequest] turns it into a [Request] with an [Operation], a Go struct for each
// kind. The core (package core) turns an Operation into a [Result], and
// [AppendResponse] writes the response. Package client does the reverse.
//
// # Guarantees
//
// A decoded request is within the limits of limits.go: the lengths of ids, tags and
// headers, the number of actions, the range of times. All its strings are valid UTF-8 and
// contain what the sender wrote: text that JSON in Go would change silently, such as a
// lone surrogate, is refused. A request that is refused gets status 400 and a sentence
// that names the field.
//
// # Design
//
// Times are milliseconds since 1970 in UTC, as in the protocol. The data of a value is
// opaque: the SDKs put base64 text into it, and this package does not decode it.
package protocol
