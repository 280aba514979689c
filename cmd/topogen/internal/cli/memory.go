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
	builds []*cache.Build
}

// remember begins builds; it comes before anything but the topologies is read.
func remember(sources []source) memory {
	known := cache.Open("")
	identity := cache.Identify()
	m := memory{}
	for _, src := range sources {
		m.builds = append(m.builds, known.Start(src.path, identity, foldersOf(src)...))
	}
	return m
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
	slices.Sort(folders)
	return slices.Compact(folders)
}

// fresh reports whether nothing has changed since builds without findings.
func (m memory) fresh() bool {
	return len(m.builds) > 0 && !slices.ContainsFunc(m.builds, func(b *cache.Build) bool { return !b.Fresh() })
}

// record remembers builds that had nothing to say.
func (m memory) record(results []gen.Result, outcomes []outcome) {
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
		var inputs cache.Inputs
		for _, path := range results[i].Inputs {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				inputs.Dirs = append(inputs.Dirs, path)
				inputs.Files = append(inputs.Files, cache.ModuleFiles(path, os.Getenv("GOWORK"))...)
			} else {
				inputs.Files = append(inputs.Files, path)
			}
		}
		b.Record(inputs, outputs)
	}
}
