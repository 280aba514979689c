package bind

import (
	"go/token"
	"go/types"
	"testing"
)

// TestNoCopyInItself checks that the search for locks ends for a type that contains itself,
// which Go refuses.
func TestNoCopyInItself(t *testing.T) {
	self := types.NewNamed(types.NewTypeName(token.NoPos, nil, noCopy, nil), nil, nil)
	self.SetUnderlying(types.NewStruct([]*types.Var{types.NewField(token.NoPos, nil, "x", self, false)}, nil))
	message := types.NewStruct([]*types.Var{types.NewField(token.NoPos, nil, "x", self, false)}, nil)
	if held := new(binder).lock(message); held != "" {
		t.Errorf("lock in %s", held)
	}
}
