// Command table runs all measurements and writes the tables between the markers of
// bench/README.md. Run it in the folder of the bench module:
//
//	go run ./cmd/table
//	go run ./cmd/table -print -only '^pipeline$' -rounds 3
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/topogen/topogen/bench/suite"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 7, "number of rounds, in which contenders take turns")
	duration := flag.Duration("run", 60*time.Millisecond, "approximate time of one contender in one round")
	only := flag.String("only", "", "a regular expression: the experiments to run; implies -print")
	printing := flag.Bool("print", false, "print the tables instead of writing the page")
	page := flag.String("page", "README.md", "the page")
	flag.Parse()
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds must be at least 1, got %d", *rounds)
	}
	var sections []suite.Section
	for _, e := range suite.Experiments() {
		if !wanted.MatchString(e.Name) {
			continue
		}
		began := time.Now()
		s, err := e.Measure(suite.Effort{Rounds: *rounds, Run: *duration})
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%-16s %v\n", e.Name, time.Since(began).Round(time.Millisecond))
		sections = append(sections, s)
	}
	text := markdown(sections, *rounds)
	if *printing || *only != "" {
		_, err := fmt.Print(text)
		return err
	}
	return replace(*page, text)
}
