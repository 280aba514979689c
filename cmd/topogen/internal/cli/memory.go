package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/gen"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/spec"
)

// memory is what the cache knows about the topologies of a build.
type memory struct {
	builds []*cache.Build // by source
}

// remember begins builds; it comes before anything but the topologies is read.
func remember(sources []source, flags buildFlags) memory {
	known := cache.Open("")
	identity := cache.Identify(flags...)
	m := memory{}
	for _, src := range sources {
		m.builds = append(m.builds, known.Start(src.path, identity, foldersOf(src)...))
	}
	return m
}

// watch notes how everything is that the builds are about to read, as far as that is
// known: from the attempt before, if there is one. One topology may read the folder of
// another. It is told of all of them, and so knows their Go files by name: their times
// change as soon as a temporary file is made there.
func (m memory) watch(sources []source, before *compilation) {
	folders := foldersOfAll(sources)
	for i, b := range m.builds {
		in := cache.Inputs{Files: cache.ModuleFiles(sources[i].dir(), os.Getenv("GOWORK")), Dirs: folders}
		if before != nil {
			for j, result := range before.results {
				if before.sources[j].path == sources[i].path {
					was := inputsOf(sources[i], result)
					in.Files, in.Dirs = append(in.Files, was.Files...), slices.Concat(folders, was.Dirs)
				}
			}
		}
		b.Watch(in)
	}
}

// foldersOfAll returns the folders that outputs may be written to, each once.
func foldersOfAll(sources []source) []string {
	var folders []string
	for _, src := range sources {
		folders = append(folders, foldersOf(src)...)
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// foldersOf returns the folders that outputs of a topology may be written to.
// The output is in the folder of the topology unless that says otherwise, and
// only then is it worth parsing twice.
func foldersOf(src source) []string {
	folders := []string{src.dir()}
	if bytes.Contains(src.text, []byte("output")) {
		if topology, _ := spec.Parse(src.path, src.text); topology != nil {
			output := filepath.Join(src.dir(), filepath.FromSlash(topology.Output.Value))
			folders = append(folders, filepath.Dir(output))
		}
	}
	return folders
}

// fresh reports whether nothing has changed since builds without findings.
func (m memory) fresh() bool {
	return len(m.builds) > 0 && !slices.ContainsFunc(m.builds, func(b *cache.Build) bool { return !b.Fresh() })
}

// changed names an input of the i-th topology that may not be as it was when it was
// read, or is "".
func (m memory) changed(i int, sources []source, results []gen.Result, outcomes []outcome) string {
	var outputs []string
	for _, o := range outcomes {
		for _, file := range o.changes.List() {
			outputs = append(outputs, filepath.Join(o.dir, filepath.FromSlash(file.Name)))
		}
	}
	for i, result := range results {
		for _, name := range result.Keep {
			outputs = append(outputs, filepath.Join(sources[i].dir(), filepath.FromSlash(name)))
		}
	}
	return m.builds[i].Changed(inputsOf(sources[i], results[i]), outputs)
}

// inputsOf is what a topology's result depends on.
func inputsOf(src source, result gen.Result) cache.Inputs {
	inputs := cache.Inputs{Read: map[string][]byte{src.path: src.text}}
	for _, path := range result.Inputs {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			inputs.Dirs = append(inputs.Dirs, path)
			inputs.Files = append(inputs.Files, cache.ModuleFiles(path, os.Getenv("GOWORK"))...)
		} else {
			inputs.Files = append(inputs.Files, path)
		}
	}
	return inputs
}

// record remembers builds that had nothing to say.
func (m memory) record(sources []source, results []gen.Result, outcomes []outcome) {
	if len(outcomes) != len(m.builds) {
		return
	}
	var outputs []cache.Output
	for _, o := range outcomes {
		for _, file := range o.changes.Outputs() {
			outputs = append(outputs, cache.Output{Path: file.Name, Body: file.Body})
		}
	}
	for i, b := range m.builds {
		b.Record(inputsOf(sources[i], results[i]), outputs)
	}
}
