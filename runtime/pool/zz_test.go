package pool
import ("testing";"unsafe")
func TestZZ(t *testing.T) { t.Log(unsafe.Sizeof(Unit{}), unsafe.Sizeof(Link{}), unsafe.Sizeof(Out{})) }
