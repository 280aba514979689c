package errtop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/topogen/topogen/runtime/errtop"
)

func ExampleKeeper() {
	var keeper errtop.Keeper // in memory; use Open for a keeper with a file
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

// A keeper with a file continues with the counts of the process before it.
func ExampleOpen() {
	folder, err := os.MkdirTemp("", "errtop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "errors.pb")
	for range 2 { // two runs of a program
		keeper, err := errtop.Open(errtop.Settings{Path: path})
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = keeper.Catch(0, "import", func() error { return errors.New("the line is empty") })
		if err := keeper.Close(); err != nil { // writes the file
			fmt.Println(err)
		}
	}
	entries, err := errtop.Read(path)
	for _, e := range entries {
		fmt.Println(e.Count, e.Text)
	}
	fmt.Println(err)
	// Output:
	// 2 import: the line is empty
	// <nil>
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
