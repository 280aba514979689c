package cli

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/spec/finding"
)

// compilation compiles the topology files of one command line.
type compilation struct {
	report  *report
	flags   buildFlags
	proto   bool // also generate the .proto
	noCache bool // do not use cached output of the go command
	sources []source
	kept    int            // number of findings that generate keeps: about unreadable files, and from cached builds
	results []gen.Result   // by source
	inputs  []cache.Inputs // by source
	batch   *cache.Batch   // the inputs as they were before they were read
	planned []outcome      // the changes to the disk
	before  *compilation   // the previous attempt, or nil; it lists the files to be read
}

// outcome has the changes of a topology to its folder.
type outcome struct {
	dir     string
	changes *write.Changes
}

// newCompilation reads each file once, even if it is named several times. It reports
// files that cannot be read.
func newCompilation(r *report, names []string, flags buildFlags) *compilation {
	c := &compilation{report: r, flags: flags}
	seen := make(map[string]bool)
	for _, name := range r.expand(names) {
		src, ok := r.read(name)
		if !ok {
			continue
		}
		folder, err := filepath.EvalSymlinks(src.dir())
		if err != nil {
			folder = src.dir()
		}
		if file := filepath.Join(folder, src.base()); !seen[file] { // a symbolic link to a topology file is a separate topology
			seen[file] = true
			c.sources = append(c.sources, src)
		}
	}
	c.kept = len(r.findings)
	return c
}

// generate compiles the files in memory and reports the findings. A second call
// replaces the results and findings of the first.
func (c *compilation) generate(ctx context.Context) error {
	c.report.findings = c.report.findings[:c.kept]
	if len(c.sources) == 0 {
		return nil
	}
	if c.batch == nil || c.results != nil {
		c.batch = c.begin()
	}
	c.watch()
	inputs := make([]gen.Input, len(c.sources))
	for i, src := range c.sources {
		inputs[i] = gen.Input{Path: src.path, Source: src.text}
	}
	options := gen.Options{Flags: c.flags, Proto: c.proto}
	if !c.noCache {
		options.Cache = cache.Open("")
	}
	c.results = gen.GenerateAll(ctx, inputs, options)
	if err := ctx.Err(); err != nil {
		return err
	}
	c.inputs = inputsOf(c.sources, c.results)
	for i, result := range c.results {
		c.report.add(result.Findings...)
		if len(result.Files) == 0 && !finding.HasErrors(result.Findings) {
			return fmt.Errorf("%s has neither output nor findings: this is a bug in topogen", shown(c.sources[i].path))
		}
	}
	return nil
}

// plan compares the generated files with the files on disk. If a topology has errors,
// only the ports of the topologies with errors are written, because an editor needs them
// to repair the handlers. The files of valid topologies stay unchanged, so that they
// still fit each other.
func (c *compilation) plan() {
	onlyPorts := c.report.refuses(c.report.findings)
	c.planned = nil
	for i, result := range c.results {
		for _, name := range result.Keep {
			c.batch.Writes(filepath.Join(c.sources[i].dir(), filepath.FromSlash(name)))
		}
		files, keep := result.Files, result.Keep
		if onlyPorts {
			if files, keep = portsOf(result); len(files) == 0 || !c.report.refuses(result.Findings) {
				continue
			}
		}
		dir := c.sources[i].dir()
		changes, findings := write.Plan(write.Target{
			Dir: dir, Source: c.sources[i].base(), Files: files, Keep: keep, Display: filepath.ToSlash(onDisk(dir)),
		})
		c.report.add(findings...)
		c.planned = append(c.planned, outcome{dir, changes})
		for _, file := range changes.List() {
			c.batch.Writes(filepath.Join(dir, filepath.FromSlash(file.Name)))
		}
	}
}

// portsOf returns the ports of a result, and the names of its other output files.
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

// apply writes the files and prints their names.
func (c *compilation) apply(ctx context.Context, words io.Writer) {
	changes := make([]*write.Changes, len(c.planned))
	for i, o := range c.planned {
		changes[i] = o.changes
	}
	c.report.add(write.Apply(ctx, c.changed, changes...)...)
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
