package nameclash

import edgeNames "fmt"

// String is the number of messages of c. It uses an import with a generated name.
func (c Context) String() string { return edgeNames.Sprint(len(c.List)) }
