package wire

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/topogen/topogen/bench/wire/pb"
)

var at = time.Unix(1_700_000_000, 123_456_789).UTC()

func sampleOrder() *Order {
	o := &Order{
		Account: "ann@example.com", Number: 123_456_789, Cents: -12_345, Paid: true, At: at,
		Tags: []string{"new", "gift", "express"}, Note: []byte("leave it at the door, please"),
		Totals: map[string]int64{"net": 10_000, "tax": 1_900, "gross": 11_900, "paid": 11_900},
	}
	for i := range 8 {
		o.Lines = append(o.Lines, Line{Item: "item number " + strconv.Itoa(i), Count: uint32(i), Price: float64(i) * 1.5, Parts: []int32{1, -2, 300, 40_000}})
	}
	return o
}

func sampleScan() *Scan {
	s := &Scan{Sensor: "lidar/front", Number: 99, At: at, Pose: Pose{1, 2, 3, 0.1, 0.2, 0.3}, Raw: make([]byte, 4096)}
	for i := range 720 {
		s.Ranges = append(s.Ranges, float32(i)/10)
		s.Echoes = append(s.Echoes, uint32(i*7))
	}
	return s
}

// toOrder and the functions below convert to and from the types of protoc-gen-go.
func toOrder(o *Order) *pb.Order {
	p := &pb.Order{
		Account: o.Account, Number: o.Number, Cents: int64(o.Cents), Paid: o.Paid, At: timestamppb.New(o.At),
		Tags: o.Tags, Totals: o.Totals, Note: o.Note,
	}
	for _, l := range o.Lines {
		p.Lines = append(p.Lines, &pb.Line{Item: l.Item, Count: l.Count, Price: l.Price, Parts: l.Parts})
	}
	return p
}

func fromOrder(p *pb.Order) *Order {
	o := &Order{
		Account: p.Account, Number: p.Number, Cents: int(p.Cents), Paid: p.Paid, At: p.At.AsTime(),
		Tags: p.Tags, Totals: p.Totals, Note: p.Note,
	}
	for _, l := range p.Lines {
		o.Lines = append(o.Lines, Line{Item: l.Item, Count: l.Count, Price: l.Price, Parts: l.Parts})
	}
	return o
}

func toScan(s *Scan) *pb.Scan {
	return &pb.Scan{
		Sensor: s.Sensor, Number: s.Number, At: timestamppb.New(s.At),
		Pose:   &pb.Pose{X: s.Pose.X, Y: s.Pose.Y, Z: s.Pose.Z, Roll: s.Pose.Roll, Pitch: s.Pose.Pitch, W: s.Pose.W},
		Ranges: s.Ranges, Echoes: s.Echoes, Raw: s.Raw,
	}
}

func fromScan(p *pb.Scan) *Scan {
	return &Scan{
		Sensor: p.Sensor, Number: p.Number, At: p.At.AsTime(),
		Pose:   Pose{p.Pose.GetX(), p.Pose.GetY(), p.Pose.GetZ(), p.Pose.GetRoll(), p.Pose.GetPitch(), p.Pose.GetW()},
		Ranges: p.Ranges, Echoes: p.Echoes, Raw: p.Raw,
	}
}
