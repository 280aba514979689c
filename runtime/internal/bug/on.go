//go:build topobug

package bug

import "os"

var on = Bug(os.Getenv(Variable))

// On reports whether a deliberate bug is turned on.
func On(b Bug) bool { return b == on }
