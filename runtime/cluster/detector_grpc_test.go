package cluster_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/topogen/topogen/runtime/member"
	"github.com/topogen/topogen/runtime/member/memberlist"
	"github.com/topogen/topogen/runtime/transport"
	"github.com/topogen/topogen/runtime/transport/grpc"
)

// TestDetectorsOverGRPC runs both detectors on real connections and with the clock of the host. The
// nodes know only the address of the first one, and learn the others from it.
func TestDetectorsOverGRPC(t *testing.T) {
	const fifth = 40 * time.Millisecond // of the profile
	short := member.Config{Profile: member.ProfileLocal, Interval: fifth, DirectTimeout: fifth, IndirectTimeout: fifth, Suspicion: 2 * fifth}
	for name, create := range map[string]func(member.Settings) (member.Detector, error){
		"swim":       func(s member.Settings) (member.Detector, error) { return member.New(s) },
		"memberlist": func(s member.Settings) (member.Detector, error) { return memberlist.New(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits until a node counts as dead
			first := make(map[string]string)
			var detectors []member.Detector
			var transports []transport.Transport
			for i := range 4 {
				name := fmt.Sprintf("n%d", i+1)
				tr, err := grpc.Listen(grpc.Config{Node: name, Topology: "test", Version: "1", Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first[name] = tr.Addr().String()
				}
				d, err := create(member.Settings{
					Node: member.Node{Name: name, Address: tr.Addr().String()}, First: first,
					Config: short, Transport: tr, Group: transport.GroupID("test", "member"),
					Logger: slog.New(slog.DiscardHandler),
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Start(); err != nil {
					t.Fatal(err)
				}
				transports, detectors = append(transports, tr), append(detectors, d)
			}
			await(t, detectors, "n1 alive, n2 alive, n3 alive, n4 alive")

			if err := detectors[3].Close(); err != nil { // without Leave: a crash
				t.Error(err)
			}
			if err := transports[3].Close(); err != nil {
				t.Error(err)
			}
			await(t, detectors[:3], "n1 alive, n2 alive, n3 alive, n4 dead")

			if err := detectors[2].Leave(t.Context()); err != nil {
				t.Error(err)
			}
			await(t, detectors[:2], "n1 alive, n2 alive, n3 left, n4 dead")
			for i := range 3 {
				if err := detectors[i].Close(); err != nil {
					t.Error(err)
				}
				if err := transports[i].Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// await waits until all detectors know a list of members.
func await(t *testing.T, detectors []member.Detector, want string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for i := 0; i < len(detectors); {
		var list []string
		for _, m := range detectors[i].Members() {
			list = append(list, fmt.Sprintf("%s %v", m.Name, m.State))
		}
		switch got := strings.Join(list, ", "); {
		case got == want:
			i++
		case time.Now().After(deadline):
			t.Fatalf("node %d knows %s, want %s", i+1, got, want)
		default:
			<-poll.C
		}
	}
}
