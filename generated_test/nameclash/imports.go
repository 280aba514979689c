package nameclash

import edgeNames "fmt"

// String says how many messages c has: names of imports are taken, too.
func (c Context) String() string { return edgeNames.Sprint(len(c.List)) }
