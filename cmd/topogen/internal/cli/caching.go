package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// recall removes the topologies whose inputs have not changed since a build without
// errors, and reports the warnings of that build again.
func (c *compilation) recall() {
	c.batch = c.begin()
	found := make([]cache.Found, len(c.sources))
	fresh := make([]bool, len(c.sources))
	warnings := make([][]finding.Finding, len(c.sources))
	for i, src := range c.sources {
		found[i], fresh[i] = c.batch.Recall(src.path)
		fresh[i] = fresh[i] && json.Unmarshal([]byte(found[i].Value), &warnings[i]) == nil
	}
	spread(c.sources, found, fresh)
	var stale []source
	for i, src := range c.sources {
		if fresh[i] {
			c.report.add(warnings[i]...)
		} else {
			stale = append(stale, src)
		}
	}
	c.sources, c.kept = stale, len(c.report.findings)
}

// spread marks a topology as stale if it has read a folder into which a stale topology
// may write.
func spread(sources []source, found []cache.Found, fresh []bool) {
	readers := make(map[string][]int)
	var stale []int
	for i, f := range found {
		if !fresh[i] {
			stale = append(stale, i)
			continue
		}
		for _, dir := range f.Dirs {
			readers[dir] = append(readers[dir], i)
		}
	}
	for len(stale) > 0 {
		i := stale[0]
		stale = stale[1:]
		dir := sources[i].folders[len(sources[i].folders)-1] // of the output
		for _, j := range readers[dir] {
			if fresh[j] {
				fresh[j] = false
				stale = append(stale, j)
			}
		}
		delete(readers, dir)
	}
}

// begin starts a batch: inputs are read from now on.
func (c *compilation) begin() *cache.Batch { return cache.Open("").Start(cache.Identify(c.flags...)) }

// watch records the state of the inputs before they are read. Before the first attempt,
// only some inputs are known; later the previous attempt lists them.
func (c *compilation) watch() {
	in := cache.Inputs{Dirs: foldersOfAll(c.sources)}
	for _, src := range c.sources {
		in.Files = append(in.Files, cache.ModuleFiles(src.dir(), os.Getenv("GOWORK"))...)
	}
	if c.before != nil {
		for _, was := range c.before.inputs {
			in.Files, in.Dirs = append(in.Files, was.Files...), append(in.Dirs, was.Dirs...)
		}
	}
	c.batch.Watch(in)
}

// foldersOfAll returns the folders that outputs may be written to, each once.
func foldersOfAll(sources []source) []string {
	var folders []string
	for _, src := range sources {
		folders = append(folders, src.folders...)
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// foldersOf returns the folders to which the output of a topology may be written. The
// output is in the folder of the topology unless the file has "output"; only then the
// file is parsed here too.
func foldersOf(path string, text []byte) []string {
	folders := []string{filepath.Dir(path)}
	if bytes.Contains(text, []byte("output")) {
		if topology, _ := spec.Parse(path, text); topology != nil {
			output := filepath.Join(folders[0], filepath.FromSlash(topology.Output.Value))
			folders = append(folders, filepath.Dir(output))
		}
	}
	return folders
}

// inputsOf returns the files and folders that the results depend on.
func inputsOf(sources []source, results []gen.Result) []cache.Inputs {
	modules := make(map[string][]string) // files, by folder
	inputs := make([]cache.Inputs, len(results))
	for i, result := range results {
		in := cache.Inputs{Dirs: slices.Clone(sources[i].folders), Read: map[string][]byte{sources[i].path: sources[i].text}}
		for _, path := range result.Inputs {
			info, err := os.Stat(path)
			if err != nil || !info.IsDir() {
				in.Files = append(in.Files, path)
				continue
			}
			files, ok := modules[path]
			if !ok {
				files = cache.ModuleFiles(path, os.Getenv("GOWORK"))
				modules[path] = files
			}
			in.Dirs, in.Files = append(in.Dirs, path), append(in.Files, files...)
		}
		inputs[i] = in
	}
	return inputs
}

// changed returns an input that may have changed since it was read, or "".
func (c *compilation) changed() string {
	if c.batch == nil {
		return "" // nothing was read
	}
	all := cache.Inputs{Read: make(map[string][]byte)}
	for i, in := range c.inputs {
		all.Files, all.Dirs = append(all.Files, in.Files...), append(all.Dirs, in.Dirs...)
		all.Read[c.sources[i].path] = c.sources[i].text
	}
	return c.batch.Changed(all)
}

// record stores the builds without errors, with their warnings, in the cache.
func (c *compilation) record() {
	if c.report.refuses(c.report.findings) || len(c.planned) != len(c.results) {
		return
	}
	var builds []cache.Build
	for i, result := range c.results {
		warnings, err := json.Marshal(result.Findings)
		if err != nil || slices.ContainsFunc(result.Findings, func(f finding.Finding) bool { return c.report.severity(f) == finding.Error }) {
			continue
		}
		build := cache.Build{Key: c.sources[i].path, Inputs: c.inputs[i], Value: string(warnings)}
		for _, file := range c.planned[i].changes.Outputs() {
			build.Outputs = append(build.Outputs, cache.Output{Path: file.Name, Body: file.Body})
		}
		builds = append(builds, build)
	}
	c.batch.Record(builds...)
}
