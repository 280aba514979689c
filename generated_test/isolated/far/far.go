// Package far has a processor that a topology of another package uses.
package far

import "os"

type Question struct{ N int }
type Reply struct{ N, Process int }

// Far replies to requests.
type Far struct{ seen int }

func (f *Far) ReceiveFarQuestion(q Question) Reply {
	f.seen += q.N
	return Reply{f.seen, os.Getpid()}
}
