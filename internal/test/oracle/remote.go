package oracle

import "fmt"

// A Remote is a server in debug mode whose background loops are stopped (debug.start).
type Remote interface {
	// Send sends a request and returns the response.
	Send(request []byte) (response []byte, err error)
	// Restart ends the process of the server and starts it again, also in debug mode.
	Restart() error
}

// Check sends a random sequence of requests to a server that start has started, and
// compares its responses and its state with those of an oracle. The error is a transcript
// of the requests with the first difference.
func Check(seed uint64, start func(Config) (Remote, error)) error {
	s := generate(seed, true)
	r, err := start(s.config)
	if err != nil {
		return err
	}
	o := New(s.config)
	oracleAt, remoteAt := cursors{}, cursors{}
	transcript := fmt.Sprintf("%+v\n", s.config)
	for i, step := range s.steps {
		previous := s.steps[max(0, i-1)]
		oracleAt.before(step, previous)
		remoteAt.before(step, previous)
		transcript += step.String() + "\n"
		switch step.action {
		case crash:
			err = r.Restart()
		case request:
			var want, got []byte
			want, _ = o.Apply(step.wall, step.run, step.body(oracleAt))
			if got, err = r.Send(step.body(remoteAt)); err == nil {
				err = difference(canonical(want), canonical(got))
			}
			oracleAt.after(step, want)
			remoteAt.after(step, got)
		}
		if err == nil {
			err = sameState(o, r, step)
		}
		if err != nil {
			return fmt.Errorf("%s%w", transcript, err)
		}
	}
	return nil
}

// sameState compares the state of a server with an oracle.
func sameState(o *Server, r Remote, s step) error {
	s.request = object{"kind": "debug.snap", "head": object{"corrId": "snap", "version": version}, "data": object{}}
	want, _ := o.Apply(s.wall, s.run, s.body(nil))
	got, err := r.Send(s.body(nil))
	if err != nil {
		return err
	}
	return difference(lines(want), lines(got))
}

func difference(oracle, server string) error {
	if oracle == server {
		return nil
	}
	return fmt.Errorf("oracle:\n%s\nserver:\n%s", oracle, server)
}
