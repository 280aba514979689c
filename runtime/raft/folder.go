package raft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/topogen/topogen/runtime/raft/wal"
)

// The kinds of logs that a folder can hold. They are below the folder that the topology
// file names. The log of a node is in a folder with the name of the node. The log of an
// instance is in a folder with the number of the instance.
const (
	logAlone      = "a state machine on one disk"
	logOfNode     = "a node among several"
	logOfInstance = "an instance among several"
	logOfBoth     = "an instance of a node among several"
)

// logKind returns the kind of log that c needs, and a description of its users for
// errors.
func (c *Config) logKind() (of, who string) {
	switch nodes, instances := len(c.Peers) > 0, c.Instances > 1; {
	case nodes && instances:
		return logOfBoth, "several instances"
	case instances:
		return logOfInstance, "several instances"
	case nodes:
		return logOfNode, "several nodes"
	}
	return logAlone, "a state machine on one disk"
}

// prepareFolder creates the parents of the folder of the log. It refuses to start with an
// empty state if the folder holds a log of another kind: the topology file was changed
// between one disk, several nodes and several instances, and the old log would be ignored
// silently.
func prepareFolder(c *Config) error {
	kind, who := c.logKind()
	refuse := func(of, in, advice string) error {
		return fmt.Errorf("raft: %s holds the log of %s%s, and %s cannot use that log; name another path, or %s", c.baseDir, of, in, who, advice)
	}
	if kind != logAlone && holdsLog(c.baseDir) {
		return refuse(logAlone, "", c.conversion(logAlone, ""))
	}
	if !holdsLog(c.Dir) {
		for _, folder := range logsBelow(c.baseDir) {
			if of := c.logKindOf(folder); of != kind {
				return refuse(of, ", in "+folder, c.conversion(of, folder))
			}
		}
	}
	if next := filepath.Clean(c.Dir) + recoveringSuffix; holdsLog(next) && !holdsLog(c.Dir) {
		return fmt.Errorf("raft: topoctl raft recover was interrupted; the log of the new group is in %s: rename this folder to %s", next, filepath.Clean(c.Dir))
	}
	dir := c.baseDir
	for _, name := range c.subdirs {
		if err := makeFolder(filepath.Clean(dir)); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("raft: the folder of the log: %w: create %s first", err, filepath.Dir(filepath.Clean(dir)))
		} else if err != nil {
			return fmt.Errorf("raft: the folder of the log: %w", err)
		}
		dir = filepath.Join(dir, name)
	}
	return nil
}

// conversion says how the log in a folder can be converted to the kind that c needs.
func (c *Config) conversion(of, folder string) string {
	path := filepath.Join(c.baseDir, folder)
	switch kind, _ := c.logKind(); {
	case of == logAlone && kind == logOfNode:
		return fmt.Sprintf("convert it: topoctl raft recover %s --node %s --address %s --to NEWPATH --yes", path, c.Node, c.Peers[c.Node])
	case of == logOfNode && kind == logAlone:
		return fmt.Sprintf("convert it: topoctl raft recover %s --to NEWPATH --yes", path)
	}
	return "move it away"
}

// logKindOf returns the kind of the log in a folder, from the folder's name below
// baseDir.
func (c *Config) logKindOf(folder string) string {
	if strings.ContainsRune(folder, filepath.Separator) {
		return logOfBoth
	}
	if _, err := strconv.ParseUint(folder, 10, 32); err == nil && c.Peers[folder] == "" {
		return logOfInstance
	}
	return logOfNode
}

// explainInstances adds advice to err if the log was written with another number of
// instances.
func (c *Config) explainInstances(err error) error {
	var identity *wal.IdentityError
	if !errors.As(err, &identity) || identity.Got.Topology != identity.Want.Topology {
		return err
	}
	name := func(group string) string { return group[:strings.LastIndexByte(group, '/')+1] }
	_, was, ok := strings.Cut(identity.Got.Group, "-of-")
	if !ok || c.Instances < 2 || name(identity.Got.Group) != name(identity.Want.Group) {
		return err
	}
	return fmt.Errorf("raft: %s was written with instances: %s, and now there are %d, so keys would go to other instances; set it to %s again, or name another path and propose the updates of the old log there: %w", c.baseDir, was, c.Instances, was, err)
}

// lostAdvice says what to do about a lost log, and about a log whose folder does not contain the
// record of the node. On one disk there is no group from which the node could get its state
// again, so the user must not empty the folder. Empty texts mean the commands of topoctl that
// exchange a member of a group.
func (c *Config) lostAdvice() (lostLog, lostRecord string) {
	if c.LostLog != "" || len(c.Peers) > 0 {
		return c.LostLog, ""
	}
	return fmt.Sprintf("The state machine is on one disk: move %s away, and restore a backup (topoctl raft restore FILE --to %s)", c.Dir, c.baseDir),
		fmt.Sprintf("keep the folder, because its log has all updates; topoctl raft recover %s --to NEWPATH --yes writes them to a new log; replace the folder with that log", c.Dir)
}

// holdsLog reports whether there is a log in a folder, which package wal can open. The
// folder of the segments gets its final name only after it contains the first segment. A
// folder with this name and without segments was emptied.
func holdsLog(dir string) bool {
	path := filepath.Join(dir, "wal")
	if segments, err := os.ReadDir(path); err == nil {
		return slices.ContainsFunc(segments, func(e os.DirEntry) bool { return filepath.Ext(e.Name()) == ".wal" })
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir() // package wal reports why it cannot be read
}

// logsBelow returns the folders that hold a log, one or two levels below dir.
func logsBelow(dir string) (list []string) {
	entries, _ := os.ReadDir(dir) // if it cannot be read, package wal reports the error
	for _, e := range entries {
		if holdsLog(filepath.Join(dir, e.Name())) {
			list = append(list, e.Name())
			continue
		}
		within, _ := os.ReadDir(filepath.Join(dir, e.Name()))
		for _, w := range within {
			if folder := filepath.Join(e.Name(), w.Name()); holdsLog(filepath.Join(dir, folder)) {
				list = append(list, folder)
			}
		}
	}
	return list
}

// makeFolder creates a folder for the logs of several nodes, in an existing folder. The
// folder is durable when makeFolder returns, also if a process that was killed has created it.
// If a power failure removed the log of a node, the node would not know its promises any more.
func makeFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	err := syncFolder(filepath.Dir(filepath.Clean(dir)))
	if errors.Is(err, os.ErrPermission) { // the process may be allowed to write the folder but not to read it
		return nil
	}
	return err
}
