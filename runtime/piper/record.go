package piper

import "log/slog"

// Recorder stores the errors and panics of handlers. errtop.Keeper implements it.
// Several goroutines call its methods at the same time. They are not called while
// handlers succeed.
type Recorder interface {
	// Record stores an error of an instance. If stack is not nil, it was a panic.
	// Worker is the index of the worker that runs the instance, or -1 for a goroutine
	// of its own.
	Record(worker int, processor string, instance int, err error, stack []byte)
	// Close is called before Run returns. Run returns its error.
	Close() error
}

// Record makes Run open a recorder and close it before it returns. It overrides the
// errors section of the topology file. A nil recorder records nothing.
func Record(open func() (Recorder, error)) Option {
	return func(o *options) error { o.errors = open; return nil }
}

// record passes an error to the recorder. If the recorder panics, the panic is logged,
// so that the error itself is still handled.
func (b *logbook) record(e *HandlerError) {
	p := b.pool
	if p.recorder == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			p.log().Warn("topogen: the error recorder panicked", slog.Any("cause", cause))
		}
	}()
	p.recorder.Record(e.worker, e.Processor, e.Instance, e.Err, e.Stack)
}
