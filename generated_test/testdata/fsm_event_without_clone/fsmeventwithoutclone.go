package fsmeventwithoutclone

type State struct{}

// List holds pointers, and so does what is told of it: a type of the runtime, which has no Clone.
type List struct{ Names []string }

func (List) Update(*State) error { return nil }

type (
	Audit struct{}
	Board struct{}
)

func (*Audit) ReceiveListsApplied(ListsApplied) {}
func (*Board) ReceiveListsApplied(ListsApplied) {}
