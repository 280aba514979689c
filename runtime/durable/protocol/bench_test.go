package protocol

import "testing"

var createText = []byte(`{"kind":"promise.create","head":{"corrId":"3f2a4f10-6a27-4f4e-9d3c-0a3a57a0b1de","version":"2026-04-01"},"data":{"id":"order-17:0.1","timeoutAt":1790000000000,"param":{"headers":{},"data":"eyJmdW5jIjoiY2hhcmdlIiwiYXJncyI6WzE3XSwidmVyc2lvbiI6MX0="},"tags":{"resonate:scope":"global","resonate:target":"poll://any@default","resonate:branch":"order-17:0.1","resonate:parent":"order-17:0","resonate:origin":"order-17"}}}`)

func BenchmarkDecodeRequest(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(createText)))
	for b.Loop() {
		if _, err := DecodeRequest(createText); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	r, err := DecodeRequest(createText)
	if err != nil {
		b.Fatal(err)
	}
	create := r.Op.(PromiseCreate)
	res := Result{Status: OK, Promise: &Promise{ID: create.ID, State: Pending, Param: create.Param, Tags: create.Tags, TimeoutAt: create.TimeoutAt, CreatedAt: 1}}
	buffer := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buffer = AppendResponse(buffer[:0], &r, &res)
	}
	b.SetBytes(int64(len(buffer)))
}
