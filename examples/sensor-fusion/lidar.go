package main

import "github.com/topogen/topogen/runtime/topo"

// Lidar has a driver that hangs. The health check detects that and abandons the call.
type Lidar struct {
	sensor
	hang func()
}

func NewLidar(c SensorConfig) *Lidar {
	return &Lidar{newSensor(c), func() { select {} }}
}

func (l *Lidar) ReceiveTick(t topo.Tick, out *LidarSender) {
	if l.fails() {
		l.hang()
	}
	out.SendPoints(Points(l.measure(t.Time)))
}
