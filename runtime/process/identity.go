package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/topogen/topogen/runtime/topo"
)

// variable is the environment variable that tells a process which instance it runs.
const variable = "TOPOGEN_PROCESS"

// version is the version of the protocol: of the frames and of the variable.
const version = 6

// nameMax limits the names in the variable, in bytes.
const nameMax = 1000

// Info identifies the instance that a process runs.
type Info struct {
	Topology       string // as given to TakeOver and Settings; unique within an executable
	Hash           string // of the plan that the code was generated from
	Processor      string // name in the topology
	ProcessorIndex int
	Instance       int // 0 … Instances-1
	Instances      int
	MessageLimit   int    // bytes of a message, and of all messages that one call returns; 0: MessageLimitDefault
	FencingToken   uint64 // of the instance, see topo.FencingToken
}

// Identity identifies the instance to its constructor.
func (i Info) Identity() topo.Instance {
	in := topo.Instance{Processor: i.Processor, Index: i.Instance, Number: i.Instances}
	return in.WithFencingToken(i.FencingToken)
}

func (i Info) check() error {
	for _, name := range []string{i.Topology, i.Hash, i.Processor} {
		if name == "" || len(name) > nameMax || strings.ContainsAny(name, "\n\x00") {
			return fmt.Errorf("process: invalid name %q", cut(name))
		}
	}
	if i.ProcessorIndex < 0 || i.Instance < 0 || i.Instance >= i.Instances {
		return fmt.Errorf("process: invalid instance %d of %d of processor %d", i.Instance, i.Instances, i.ProcessorIndex)
	}
	if i.MessageLimit != 0 && (i.MessageLimit < MessageLimitMin || i.MessageLimit > MessageLimitMax) {
		return fmt.Errorf("process: the message limit must be between %d and %d bytes, got %d", MessageLimitMin, MessageLimitMax, i.MessageLimit)
	}
	return nil
}

// value returns the content of the variable: the instance, the parent's process ID, and
// the inherited files that the process must close.
func (i Info) value(parent int, inherited []int) string {
	lines := []string{
		strconv.Itoa(version), strconv.Itoa(parent), strings.Trim(fmt.Sprint(inherited), "[]"),
		i.Topology, i.Hash, i.Processor, strconv.Itoa(i.ProcessorIndex), strconv.Itoa(i.Instance), strconv.Itoa(i.Instances), strconv.Itoa(i.MessageLimit),
		strconv.FormatUint(i.FencingToken, 10),
	}
	return strings.Join(lines, "\n")
}

// parseValue parses the variable, which any program may have set.
func parseValue(value string) (i Info, parent int, inherited []int, err error) {
	lines := strings.Split(value, "\n")
	if lines[0] != strconv.Itoa(version) || len(lines) != 11 {
		return i, 0, nil, errors.New("it was set by another version of topogen")
	}
	number := func(text string) (n int) {
		n, e := strconv.Atoi(text)
		if e != nil {
			err = e
		}
		return n
	}
	parent = number(lines[1])
	for _, fd := range strings.Fields(lines[2]) {
		inherited = append(inherited, number(fd))
		if n := inherited[len(inherited)-1]; n <= controlFD {
			err = fmt.Errorf("file %d is in use by the process", n)
		}
	}
	i = Info{
		Topology: lines[3], Hash: lines[4], Processor: lines[5],
		ProcessorIndex: number(lines[6]), Instance: number(lines[7]), Instances: number(lines[8]), MessageLimit: number(lines[9]),
	}
	token, failed := strconv.ParseUint(lines[10], 10, 64)
	if i.FencingToken = token; err == nil {
		err = failed
	}
	if err == nil {
		err = i.check()
	}
	return i, parent, inherited, err
}

// identity is the parsed content of the variable.
type identity struct {
	info      Info
	inherited []int
}

// ownIdentity reads the variable once and unsets it, so that programs started by this
// process do not inherit it. It returns nil if the variable is not set: this process is
// then not the child of a topology. If the variable is set but invalid, the process must
// exit before main: otherwise it would run the whole program a second time.
var ownIdentity = sync.OnceValue(func() *identity {
	value, ok := os.LookupEnv(variable)
	if !ok {
		return nil
	}
	os.Unsetenv(variable)
	info, parent, inherited, err := parseValue(value)
	if err == nil && parent != os.Getppid() {
		err = fmt.Errorf("process %d is not the parent", parent)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "the environment variable %s is for the processes that a topology starts: %v; unset it\n", variable, err)
		os.Exit(exitRefused)
	}
	return &identity{info, inherited}
})

// registered maps the topologies that have called TakeOver to their hashes. A process
// that was started for another topology would run main.
var registered sync.Map
