package server

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/topogen/topogen/runtime/durable/engine"
	"github.com/topogen/topogen/runtime/durable/protocol"
)

// metrics are the metrics of the server and, if it is an engine, of its backend. The
// names that begin with resonate_ and their labels are those of the original server.
type metrics struct {
	handler  http.Handler
	making   sync.Mutex // of an answer: one at a time
	requests *prometheus.CounterVec
	kinds    map[string]*kindMetrics
	unknown  *kindMetrics // kinds that do not exist: a client must not be able to add series
	refused  atomic.Uint64
	panics   atomic.Uint64
	streams  atomic.Int64
}

// kindMetrics are the metrics of a kind of request. They are looked up once, because a
// lookup by label costs as much as the decoding of a field.
type kindMetrics struct {
	name     string
	ok       prometheus.Counter // status 200
	duration prometheus.Observer
}

func newMetrics(s *Server) *metrics {
	registry := prometheus.NewRegistry()
	m := &metrics{kinds: map[string]*kindMetrics{}, handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "resonate_request_total", Help: "Number of requests by kind and status.",
	}, []string{"kind", "status"})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "resonate_request_duration_seconds", Help: "Duration of requests by kind, with the sync of the disk.",
		Buckets: append([]float64{.0001, .00025, .0005, .001, .0025}, prometheus.DefBuckets...),
	}, []string{"kind"})
	registry.MustRegister(m.requests, durations, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, kind := range append(protocol.Kinds(), "unknown") {
		m.kinds[kind] = &kindMetrics{name: kind, ok: m.requests.WithLabelValues(kind, "200"), duration: durations.WithLabelValues(kind)}
	}
	m.unknown = m.kinds["unknown"]
	registry.MustRegister(
		counterFunc("topogen_durable_connections_refused_total", "Connections that were closed because there were too many.", nil, func() float64 { return float64(m.refused.Load()) }),
		counterFunc("topogen_durable_request_panics_total", "Requests that panicked: errors in the program.", nil, func() float64 { return float64(m.panics.Load()) }),
		gaugeFunc("topogen_durable_connections", "Open connections.", func() float64 { return float64(s.listener.count()) }),
		gaugeFunc("topogen_durable_streams", "Connected workers.", func() float64 { return float64(m.streams.Load()) }),
		gaugeFunc("topogen_durable_requests", "Requests that are being carried out.", func() float64 { return float64(len(s.slots)) }),
	)
	if e, ok := s.backend.(interface{ Stats() engine.Stats }); ok {
		registerEngine(registry, e.Stats)
	}
	return m
}

// request counts a request.
func (m *metrics) request(kind string, status int, d time.Duration) {
	k := m.kinds[kind]
	if k == nil {
		k = m.unknown
	}
	if status == protocol.OK {
		k.ok.Inc()
	} else {
		m.requests.WithLabelValues(k.name, strconv.Itoa(status)).Inc()
	}
	k.duration.Observe(d.Seconds())
}

func counterFunc(name, help string, labels prometheus.Labels, f func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, f)
}

func gaugeFunc(name, help string, f func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
}

// registerEngine registers the metrics of an engine.
func registerEngine(registry *prometheus.Registry, stats func() engine.Stats) {
	of := func(f func(*engine.Stats) uint64) func() float64 {
		return func() float64 {
			s := stats()
			return float64(f(&s))
		}
	}
	gauge := func(f func(*engine.Stats) int) func() float64 {
		return of(func(s *engine.Stats) uint64 { return uint64(f(s)) })
	}
	const messages, deliveries = "Number of messages by kind.", "Number of deliveries of messages by status."
	registry.MustRegister(
		counterFunc("resonate_messages_total", messages, prometheus.Labels{"kind": "execute"}, of(func(s *engine.Stats) uint64 { return s.Executes })),
		counterFunc("resonate_messages_total", messages, prometheus.Labels{"kind": "unblock"}, of(func(s *engine.Stats) uint64 { return s.Unblocks })),
		counterFunc("resonate_deliveries_total", deliveries, prometheus.Labels{"status": "success"}, of(func(s *engine.Stats) uint64 { return s.Polled.Delivered + s.Pushed.Delivered })),
		counterFunc("resonate_deliveries_total", deliveries, prometheus.Labels{"status": "error"}, of(func(s *engine.Stats) uint64 { return s.Polled.Failed + s.Pushed.Failed })),
		counterFunc("resonate_deliveries_total", deliveries, prometheus.Labels{"status": "dropped"}, of(func(s *engine.Stats) uint64 { return s.Polled.Dropped + s.Pushed.Dropped + s.UnblocksDropped })),
		counterFunc("resonate_schedule_promises_total", "Number of promises created by schedules.", nil, of(func(s *engine.Stats) uint64 { return s.Schedules })),
		counterFunc("topogen_durable_schedule_gaps_total", "Times that schedules skipped because they had missed too many occurrences.", nil, of(func(s *engine.Stats) uint64 { return s.Gaps })),
		counterFunc("topogen_durable_operations_total", "Operations in commits.", nil, of(func(s *engine.Stats) uint64 { return s.Operations })),
		counterFunc("topogen_durable_busy_total", "Operations that were refused because too many waited.", nil, of(func(s *engine.Stats) uint64 { return s.Busy })),
		counterFunc("topogen_durable_full_total", "Transactions that were refused because the disk was full.", nil, of(func(s *engine.Stats) uint64 { return s.Full })),
		counterFunc("topogen_durable_abandoned_total", "Operations whose caller gave up before they were carried out.", nil, of(func(s *engine.Stats) uint64 { return s.Abandoned })),
		counterFunc("topogen_durable_step_panics_total", "Operations that panicked: errors in the program.", nil, of(func(s *engine.Stats) uint64 { return s.Panics })),
		counterFunc("topogen_durable_held_ended_total", "Messages for tasks that ended, or got another worker, before there was a worker for the message.", nil, of(func(s *engine.Stats) uint64 { return s.Ended })),
		gaugeFunc("topogen_durable_waiting", "Operations that wait for a commit.", gauge(func(s *engine.Stats) int { return s.Calls })),
		gaugeFunc("topogen_durable_held", "Messages for tasks that wait for a worker.", gauge(func(s *engine.Stats) int { return s.Held })),
		&commits{stats: stats, desc: prometheus.NewDesc("topogen_durable_commit_seconds", "Duration of commits, with the sync of the disk.", nil, nil)},
	)
}

// commits turns the histogram of an engine into one of Prometheus.
type commits struct {
	stats func() engine.Stats
	desc  *prometheus.Desc
}

func (c *commits) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

func (c *commits) Collect(ch chan<- prometheus.Metric) {
	d := c.stats().Commits
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i, bound := range engine.DurationBounds {
		sum += d.Buckets[i]
		buckets[bound] = sum
	}
	ch <- prometheus.MustNewConstHistogram(c.desc, d.Count, d.Sum.Seconds(), buckets)
}

// serveMetrics answers requests on the listener of the metrics.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	switch {
	case !s.granted(r, ""):
		unauthorized(w)
	case r.URL.Path != "/metrics":
		refuse(w, protocol.NotFound, "the metrics are at /metrics")
	case getOnly(w, r):
		a := s.metrics.answer(w, r)
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.config.WriteTimeout))
		w.WriteHeader(a.status)
		w.Write(a.body.Bytes())
	}
}

// answer makes an answer with the metrics in memory. Readers wait for their turn only while answers
// are made, so a reader that takes nothing of its answer keeps no other one waiting. The number of answers
// is the one of connections.
func (m *metrics) answer(w http.ResponseWriter, r *http.Request) *answered {
	m.making.Lock()
	defer m.making.Unlock()
	a := &answered{ResponseWriter: w, status: http.StatusOK}
	m.handler.ServeHTTP(a, r)
	return a
}

// An answered request has its answer in memory.
type answered struct {
	http.ResponseWriter // only its header is used
	status              int
	body                bytes.Buffer
}

func (a *answered) WriteHeader(status int)      { a.status = status }
func (a *answered) Write(b []byte) (int, error) { return a.body.Write(b) }
