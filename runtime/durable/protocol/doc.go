// Package protocol holds the requests, responses, records and messages of Resonate's
// protocol for durable promises, version 2026-04-01, and their JSON form.
//
// A request is a JSON object with a kind, a head and data:
//
//	{"kind":"promise.get","head":{"corrId":"1","version":"2026-04-01"},"data":{"id":"order-17"}}
//
// [DecodeRequest] turns it into a [Request] with an [Operation], a Go struct for each
// kind. The core (package core) turns an Operation into a [Result], and
// [AppendResponse] writes the response. Package client does the reverse, with
// [AppendRequest] and [DecodeResponse]. A [Message] tells a worker that a task is to be
// done, or a listener that a promise is settled.
//
// # Guarantees
//
// A decoded request is within the limits of limits.go: the lengths of ids, tags and
// headers, the number of actions, the range of times. All its strings are valid UTF-8 and
// contain what the sender wrote: text that JSON in Go would change silently, such as a
// lone surrogate, is refused. A request that is refused gets status 400 and a sentence
// that names the field. Ids, tags and headers with U+0000 are refused; data may contain
// it.
//
// A response is one line. Its integers have all their digits, and an unset time is absent.
// The same record is always the same text.
//
// # Limits
//
// Empty headers are the same as no headers. Fields that the protocol does not have are
// ignored and not returned.
//
// # Design
//
// Times are milliseconds since 1970 in UTC, as in the protocol. The data of a value is
// opaque: the SDKs put base64 text into it, and this package does not decode it.
//
// The package has its own JSON scanner, because encoding/json ignores the case of keys,
// takes the last of two equal keys, and replaces what is not a character. Its tests
// compare both. The kind and the corrId are read even if the rest of a request is wrong.
package protocol
