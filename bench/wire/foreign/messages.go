// Package foreign has messages that hold messages of protobuf.
package foreign

import "github.com/topogen/topogen/bench/wire/pb"

// Envelope holds them wherever a message can stand.
type Envelope struct {
	Name   string
	Order  *pb.Order
	Lines  []*pb.Line
	Scans  map[string]*pb.Scan
	Twice  **pb.Pose
	Inside struct{ *pb.Line }
}
