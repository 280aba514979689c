package pool

// Idle reports whether Run has begun and all workers sleep.
func Idle(p *Pool) bool { return int(p.idle.Load()) == len(p.workers) }
