package cli

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/spec/finding"
)

// compilation is what becomes of the topology files of one command line.
type compilation struct {
	report  *report
	flags   buildFlags
	afresh  bool // ask the go command again for what it has said before
	sources []source
	unread  int          // findings about files that cannot be read; they come first
	results []gen.Result // by source
	memory  memory       // of how the inputs were before they were read
	planned []outcome    // what the results do to the disk
	before  *compilation // the attempt before, or nil; it tells what is going to be read
}

// outcome is what a topology does to its folder.
type outcome struct {
	dir     string
	changes *write.Changes
}

// newCompilation reads the files, each once however often it is named. Those
// that cannot be read are reported.
func newCompilation(r *report, names []string, flags buildFlags) *compilation {
	c := &compilation{report: r, flags: flags}
	for _, name := range r.expand(names) {
		src, ok := r.read(name)
		if ok && !slices.ContainsFunc(c.sources, func(other source) bool { return other.path == src.path }) {
			c.sources = append(c.sources, src)
		}
	}
	c.unread = len(r.findings)
	return c
}

// generate compiles the files in memory and reports what is wrong. A second call
// takes the place of the first.
func (c *compilation) generate(ctx context.Context) error {
	c.report.findings = c.report.findings[:c.unread]
	if len(c.sources) == 0 {
		return nil
	}
	c.memory = remember(c.sources, c.flags)
	c.memory.watch(c.sources, c.before)
	inputs := make([]gen.Input, len(c.sources))
	for i, src := range c.sources {
		inputs[i] = gen.Input{Path: src.path, Source: src.text, Flags: c.flags}
		if !c.afresh {
			inputs[i].Cache = cache.Open("")
		}
	}
	results, findings := gen.GenerateAll(ctx, inputs)
	if err := ctx.Err(); err != nil {
		return err
	}
	c.results = results
	c.report.add(findings...)
	for i, result := range results {
		if len(result.Files) == 0 && !finding.HasErrors(findings) {
			return fmt.Errorf("%s gives nothing to write, and no finding says why: this is a bug of topogen", shown(c.sources[i].path))
		}
	}
	return nil
}

// fresh reports whether nothing has changed since builds without findings.
func (c *compilation) fresh() bool { return !c.report.failed() && remember(c.sources, c.flags).fresh() }

// changed names an input that may not be as it was when it was read, or is "".
func (c *compilation) changed() string {
	for i := range c.results {
		if path := c.changedOf(i); path != "" {
			return path
		}
	}
	return ""
}

// changedOf is changed for one topology.
func (c *compilation) changedOf(i int) string {
	return c.memory.changed(i, c.sources, c.results, c.planned)
}

// plan compares what is to be written with what is on disk. Where anything is
// wrong that is the ports alone.
func (c *compilation) plan() {
	onlyPorts := c.report.refuses()
	c.planned = nil
	for i, result := range c.results {
		files, keep := result.Files, result.Keep
		if onlyPorts {
			files, keep = portsOf(result)
		}
		if len(files) == 0 && onlyPorts {
			continue // an output that is not known yet makes no file an orphan
		}
		dir := c.sources[i].dir()
		changes, findings := write.Plan(write.Target{
			Dir: dir, Source: c.sources[i].base(), Files: files, Keep: keep, Display: filepath.ToSlash(onDisk(dir)), Changed: func() string { return c.changedOf(i) },
		})
		c.report.add(findings...)
		c.planned = append(c.planned, outcome{dir, changes})
	}
}

// portsOf returns the ports among the files of a result, and the names of all
// other outputs.
func portsOf(result gen.Result) (ports []write.File, keep []string) {
	keep = result.Keep
	for _, file := range result.Files {
		if output := result.Topology.Output.Value; path.Base(file.Name) == plan.PortsFile(output) {
			ports = append(ports, file)
		} else {
			keep = append(keep, file.Name)
		}
	}
	return ports, keep
}

// apply writes the files and says so.
func (c *compilation) apply(ctx context.Context, words io.Writer) {
	changes := make([]*write.Changes, len(c.planned))
	for i, o := range c.planned {
		changes[i] = o.changes
	}
	c.report.add(write.Apply(ctx, changes...)...)
	for _, o := range c.planned {
		if !o.changes.Applied() {
			continue
		}
		for _, file := range o.changes.List() {
			path := shown(filepath.Join(o.dir, filepath.FromSlash(file.Name)))
			switch file.Op {
			case write.Create, write.Replace:
				fmt.Fprintf(words, "topogen: wrote %s\n", path)
			case write.Remove:
				fmt.Fprintf(words, "topogen: removed %s\n", path)
			}
		}
	}
}
