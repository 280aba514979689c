package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/topogen/topogen/runtime/durable/protocol"
)

// arrivalsEnv asks a process of this program to send creates, see [SendIfAsked].
const arrivalsEnv = "TOPOGEN_BENCH_ARRIVALS"

// arrivals are creates that arrive at a rate.
type arrivals struct {
	URL  string
	Rate float64 // per second
	Run  time.Duration
}

// Creates lets creates arrive at a rate for a time, and returns their latencies in seconds,
// from the planned arrival. A process of its own sends them over HTTP, as clients do: in the
// process of the server, their goroutines would wait for each other's system calls.
func (s *System) Creates(rate float64, d time.Duration) ([]float64, error) {
	asked, err := json.Marshal(arrivals{s.server.URL(), rate, d})
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(program)
	c.Env = append(os.Environ(), arrivalsEnv+"="+string(asked))
	c.Stderr = os.Stderr
	output, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("the process that sends creates: %w", err)
	}
	var latencies []float64
	return latencies, json.Unmarshal(output, &latencies)
}

// SendIfAsked sends creates and ends the process, if it was started for that. Programs that
// call [System.Creates] begin with it.
func SendIfAsked() {
	asked := os.Getenv(arrivalsEnv)
	if asked == "" {
		return
	}
	if err := answer([]byte(asked), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func answer(asked []byte, w io.Writer) error {
	var a arrivals
	if err := json.Unmarshal(asked, &a); err != nil {
		return err
	}
	s := newSender(a.URL)
	latencies, err := a.send(s)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(latencies)
}

func (a arrivals) send(s *sender) ([]float64, error) {
	interval := time.Duration(float64(time.Second) / a.Rate)
	n := int(a.Run / interval)
	latencies := make([]float64, n)
	waiting := make(chan int, n) // creates that wait for a client
	start := time.Now()
	planned := func(i int) time.Time { return start.Add(time.Duration(i) * interval) }
	done := make(chan error, 1)
	go func() {
		_, err := loop(HalfClients, func() bool { return true }, func(int) error {
			i, ok := <-waiting
			if !ok {
				return io.EOF
			}
			res, err := s.Do(ctx, create(fmt.Sprintf("arrival-%d-%d", os.Getpid(), i)))
			latencies[i] = time.Since(planned(i)).Seconds()
			if err == nil && res.Status != protocol.OK {
				err = fmt.Errorf("status %d: %s", res.Status, res.Error)
			}
			return err
		})
		done <- err
	}()
	runtime.LockOSThread() // the thread sleeps
	defer runtime.UnlockOSThread()
	for i := range n {
		if err := sleepUntil(planned(i)); err != nil {
			return nil, err
		}
		waiting <- i
	}
	close(waiting)
	if err := <-done; !errors.Is(err, io.EOF) {
		return nil, err
	}
	return latencies, nil
}

// sleepUntil sleeps in the system, which wakes a thread within 60 µs. The timers of Go can
// be a millisecond late if no other goroutine runs, which is as long as several syncs.
func sleepUntil(t time.Time) error {
	d := time.Until(t)
	if d <= 0 {
		return nil
	}
	ts := syscall.NsecToTimespec(int64(d))
	if err := syscall.Nanosleep(&ts, nil); err != nil && !errors.Is(err, syscall.EINTR) {
		return err
	}
	return nil
}
