// Package foreign has messages that contain protobuf messages.
package foreign

import "github.com/topogen/topogen/bench/wire/pb"

// Envelope contains protobuf messages in every possible place.
type Envelope struct {
	Name   string
	Order  *pb.Order
	Lines  []*pb.Line
	Scans  map[string]*pb.Scan
	Twice  **pb.Pose
	Inside struct{ *pb.Line }
}
