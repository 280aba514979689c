//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package process

import (
	"iter"
	"syscall"
	"testing"
)

// BenchmarkStart measures the time from Start to the hello of the process.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		c, err := Start(b.Context(), settings("camera"))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		c.Kill()
		<-c.Done()
		b.StartTimer()
	}
}

// BenchmarkBack measures the time from a kill -9 during a call to the answer of the next
// process.
func BenchmarkBack(b *testing.B) {
	for b.Loop() {
		c, err := Start(b.Context(), settings("camera"))
		if err != nil {
			b.Fatal(err)
		}
		ask(b, c, "echo back")
		syscall.Kill(c.PID(), syscall.SIGKILL)
		if _, err := c.Call(7, 1, nil); err == nil {
			b.Fatal("the process was not killed")
		}
	}
}

// BenchmarkCall measures a call and its answer.
func BenchmarkCall(b *testing.B) {
	c := start(b, settings("camera"))
	payload := []byte("send message")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(7, 1, payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServe measures one send of Serve.
func BenchmarkServe(b *testing.B) {
	c := start(b, settings("camera"))
	n := 0
	b.ReportAllocs()
	c.Serve(func(iter.Seq[Send]) error {
		if n++; n == b.N {
			c.Stop()
		}
		return nil
	})
}
