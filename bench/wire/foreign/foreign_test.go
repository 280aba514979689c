package foreign

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/google/go-cmp/cmp"
	"github.com/topogen/topogen/bench/wire/pb"
	"github.com/topogen/topogen/runtime/wire"
)

// TestMessages: a proto.Message is encoded as its own bytes, and nil stays nil.
func TestMessages(t *testing.T) {
	pose, line := &pb.Pose{X: 1}, &pb.Line{Item: "tea"}
	m := &Envelope{
		Name: "n", Order: &pb.Order{Account: "ann"}, Lines: []*pb.Line{line, nil, {}}, Twice: &pose,
		Scans: map[string]*pb.Scan{"a": nil, "b": {Number: 3}},
	}
	m.Inside.Line = line
	for _, m := range []*Envelope{m, {}} {
		b, err := appendEnvelopeWhole(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		got := new(Envelope)
		if err := consumeEnvelopeWhole(b, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestWhole: a proto.Message that is the message of an edge is encoded exactly as by
// protobuf.
func TestWhole(t *testing.T) {
	scan := &pb.Scan{Sensor: "front", Ranges: []float32{1, 2}}
	b, err := appendScanPointerWhole(nil, &scan)
	if err != nil {
		t.Fatal(err)
	}
	other := new(pb.Scan)
	if err := proto.Unmarshal(b, other); err != nil || !proto.Equal(other, scan) {
		t.Errorf("protobuf read %v, %v", other, err)
	}
	for _, want := range []*pb.Scan{scan, nil} {
		if b, err = appendScanPointerWhole(nil, &want); err != nil {
			t.Fatal(err)
		}
		var got *pb.Scan
		if err := consumeScanPointerWhole(b, &got); err != nil || !proto.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%v became %v, %v", want, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	var e *wire.Error
	if err := consumeEnvelopeWhole([]byte("\x12\x03\x0a\x05a"), new(Envelope)); !errors.As(err, &e) || e.Path != "Envelope.Order" || e.Offset != 2 {
		t.Errorf("%v", err)
	}
	if _, err := appendEnvelopeWhole(nil, &Envelope{Lines: []*pb.Line{{Item: "\xff"}}}); !errors.As(err, &e) || e.Path != "Envelope.Lines" {
		t.Errorf("%v", err)
	}
}
