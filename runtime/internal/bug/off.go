//go:build !topobug

package bug

// On reports whether a deliberate bug is turned on.
func On(Bug) bool { return false }
