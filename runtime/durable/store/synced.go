package store

import "sync"

// synced is the last commit that is on the disk. bbolt shows a commit to new views before
// it is synced. A view that has seen it waits for the sync, because a power failure could
// undo what it read.
type synced struct {
	mu      sync.Mutex
	changed sync.Cond
	commit  uint64
}

// set notes that a commit was synced.
func (s *synced) set(commit uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit = max(s.commit, commit)
	s.changed.Broadcast()
}

// await returns when a commit is synced, or the store has failed.
func (d *Disk) await(commit uint64) error {
	s := &d.synced
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.commit < commit {
		if failure := d.failed.Load(); failure != nil {
			return *failure
		}
		s.changed.Wait()
	}
	return nil
}
