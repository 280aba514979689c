package errtop_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/topogen/topogen/runtime/errtop"
)

func ExampleKeeper() {
	var keeper errtop.Keeper // in memory; Open makes one that has a file
	for i := range 3 {
		err := keeper.Catch(0, "import", func() error {
			if i == 2 {
				panic("no such column")
			}
			return errors.New("the line is empty")
		})
		fmt.Println(err)
	}
	for _, e := range keeper.Top() {
		reason, _, _ := strings.Cut(e.Text, "\n")
		fmt.Println(e.Count, reason)
	}
	// Output:
	// the line is empty
	// the line is empty
	// panic: no such column
	// 2 import: the line is empty
	// 1 import: panic: no such column
}

func ExampleStackOf() {
	err := fmt.Errorf("import: %w", errtop.New("the line is empty"))
	fmt.Println(err)
	for frame := range errtop.StackOf(err).Frames() {
		fmt.Println(frame.Function)
		break
	}
	// Output:
	// import: the line is empty
	// github.com/topogen/topogen/runtime/errtop_test.ExampleStackOf
}
