package piper

import "log/slog"

// Recorder keeps the errors and panics of handlers; errtop.Keeper is one. Its
// methods are called by several goroutines at once, and never while a handler
// succeeds.
type Recorder interface {
	// Record hears of an error of an instance, or of its panic, where stack is not
	// nil. Worker is the number of the worker that runs the instance, -1 for a
	// goroutine of its own.
	Record(worker int, processor string, instance int, err error, stack []byte)
	// Close is called when Run returns; its error is Run's.
	Close() error
}

// Record makes Run open a recorder, which it closes when it returns. It goes
// before the errors section of the file. A nil recorder records nothing.
func Record(open func() (Recorder, error)) Option {
	return func(o *options) error { o.errors = open; return nil }
}

// record tells the recorder, whose own panic must not hide what it is told of.
func (p *Pool) record(e *HandlerError) {
	if p.recorder == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			p.log().Warn("topogen: the recorder of errors panics", slog.Any("cause", cause))
		}
	}()
	p.recorder.Record(e.worker, e.Processor, e.Instance, e.Err, e.Stack)
}
