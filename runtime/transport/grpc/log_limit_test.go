package grpc

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	gogrpcpeer "google.golang.org/grpc/peer"

	"github.com/topogen/topogen/runtime/internal/loglimit"
	"github.com/topogen/topogen/runtime/transport/certs"
)

// TestRefusalsOfMany: when more strangers are refused than the log remembers, one line a
// minute says how many refusals have no line of their own, and the refusal of a process
// with a valid certificate is logged, but only once, from however many addresses it comes.
func TestRefusalsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		tr := &Transport{config: Config{Topology: "bank", TrustDomain: "example.org", Logger: log.logger()}, certificates: new(certificates)}
		tr.limitLogs()
		from := func(i int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i)), Port: 1} }
		garbage := func(n int) {
			for i := range n {
				tr.refuseTLS(from(i), errors.New("garbage"))
			}
		}
		garbage(loglimit.KeysMax + 44)
		time.Sleep(loglimit.Interval - 1)
		if log.count("not logged") != 0 {
			t.Errorf("logged early:\n%s", &log)
		}
		time.Sleep(1 * time.Nanosecond)
		synctest.Wait()
		if log.count("ERROR", "garbage") != loglimit.KeysMax || log.count("not logged", "number=44") != 1 {
			t.Errorf("44 refusals must be counted:\n%s", &log)
		}
		garbage(loglimit.KeysMax + 5)
		web := identity{id: certs.ID{TrustDomain: "example.org", Topology: "bank", Client: "web"}, expires: time.Now().Add(time.Hour)}
		for i := range 2 * loglimit.KeysMax {
			ctx := gogrpcpeer.NewContext(t.Context(), &gogrpcpeer.Peer{Addr: from(i), AuthInfo: web})
			if tr.mayCall(ctx, "/a/b") == nil {
				t.Fatal("a client must not call a service of operators")
			}
		}
		if n := log.count("ERROR", "client/web is not an operator"); n != 1 {
			t.Errorf("the refusal of the client is logged %d times, want once", n)
		}
		tr.endLogs()
		if log.count("not logged") != 2 || log.count("not logged", "number=5") != 1 {
			t.Errorf("at the end 5 refusals must be counted:\n%s", &log)
		}
		time.Sleep(2 * loglimit.Interval)
		if log.count("not logged") != 2 {
			t.Errorf("no refusals must be counted after the end:\n%s", &log)
		}
	})
}
