// Command table runs replicated state machines in turns, and prints the ratios of their
// rates and which goals are reached. Run it in the folder of the bench module:
//
//	go run ./raft/cmd/table
//	go run ./raft/cmd/table -rounds 3 -only 'propose|restart' -subjects 'topogen|bare' -callers 64
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/topogen/topogen/bench/raft"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 7, "number of rounds, in which subjects take turns")
	duration := flag.Duration("run", 400*time.Millisecond, "time of one subject in one round")
	dir := flag.String("dir", "", "folder on the disk to measure (default the folder of temporary files)")
	only := flag.String("only", "", "regular expression for the tables: propose, sizes, groups, local, election, restart")
	wanted := flag.String("subjects", "", "regular expression for the subjects")
	callers := flag.String("callers", "1,64,1024", "numbers of proposers")
	bytes := flag.String("bytes", "64,1024,4096,65536,262144,1048576", "sizes of updates, at least 8")
	flag.Parse()
	parts, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	names, err := regexp.Compile(*wanted)
	if err != nil {
		return err
	}
	numbers, err := parseNumbers("callers", *callers, 1)
	if err != nil {
		return err
	}
	sizes, err := parseNumbers("bytes", *bytes, 8)
	if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds must be at least 1, got %d", *rounds)
	}
	t := table{effort: raft.Effort{Rounds: *rounds, Run: *duration, Dir: *dir}}
	for _, s := range raft.Subjects() {
		if names.MatchString(s.Name) {
			t.subjects = append(t.subjects, s)
		}
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"propose", func() error { return t.proposals(numbers) }},
		{"sizes", func() error { return t.sizes(sizes, numbers) }},
		{"groups", t.groups},
		{"local", t.local},
		{"election", t.election},
		{"restart", t.restart},
	} {
		if !parts.MatchString(part.name) {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return t.printGoals()
}

func parseNumbers(name, list string, least int) (numbers []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return nil, fmt.Errorf("-%s: must be numbers of at least %d, got %q", name, least, text)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
