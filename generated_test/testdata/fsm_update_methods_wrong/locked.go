package fsmupdatemethodswrong

import "sync"

// Locking returns what must not be copied.
type Locking struct{}

func (Locking) Update(*Accounts) (l Locked, err error) { return }

type Locked struct{ mu sync.Mutex }
