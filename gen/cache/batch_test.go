package cache

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/topogen/topogen/internal/test/speed"
)

// many is a project with n topologies in folders of their own, which read the package
// of messages too.
func (p *project) many(n int) []Build {
	builds := make([]Build, n)
	for i := range n {
		dir := fmt.Sprintf("t%d", i)
		p.put(dir+"/topology.yml", "version: 1\n")
		p.put(dir+"/handler.go", "package p\n")
		p.put(dir+"/topology_gen.go", "package p // generated\n")
		builds[i] = Build{
			Key:     p.path(dir + "/topology.yml"),
			Inputs:  Inputs{Files: []string{p.path(dir + "/topology.yml"), p.path("go.mod")}, Dirs: []string{p.path(dir), p.path("model")}},
			Outputs: []Output{{Path: p.path(dir + "/topology_gen.go"), Body: []byte("package p // generated\n")}},
			Value:   fmt.Sprint(i),
		}
	}
	return builds
}

// run uses a batch like a build of all topologies.
func (p *project) run(builds []Build) (fresh, recorded int) {
	b := p.cache.Start(p.id)
	var all Inputs
	for i, build := range builds {
		found, ok := b.Recall(build.Key)
		if ok {
			if fresh++; found.Value != fmt.Sprint(i) || len(found.Dirs) != 2 {
				p.t.Errorf("%s gives %+v", build.Key, found)
			}
		}
		all.Files, all.Dirs = append(all.Files, build.Inputs.Files...), append(all.Dirs, build.Inputs.Dirs...)
	}
	if fresh == len(builds) {
		return fresh, 0
	}
	b.Watch(all)
	for _, build := range builds {
		b.Writes(build.Outputs[0].Path)
	}
	if path := b.Changed(all); path != "" {
		p.t.Errorf("%s is taken for changed", path)
	}
	return fresh, b.Record(builds...)
}

// TestLargeBatches checks that the work grows in proportion to the number of topologies.
func TestLargeBatches(t *testing.T) {
	cost := func(n int) (cold, warm uint64) {
		p := newProject(t)
		builds := p.many(n)
		before := allocations()
		if fresh, recorded := p.run(builds); fresh != 0 || recorded != n {
			t.Fatalf("%d of %d are fresh, %d are recorded", fresh, n, recorded)
		}
		between := allocations()
		if fresh, _ := p.run(builds); fresh != n {
			t.Fatalf("%d of %d are fresh", fresh, n)
		}
		return between - before, allocations() - between
	}
	n := speed.Pick(t, 25, 75, 75)
	cold1, warm1 := cost(n)
	cold4, warm4 := cost(4 * n)
	for name, c := range map[string][2]uint64{"cold": {cold1, cold4}, "warm": {warm1, warm4}} {
		if grows := float64(c[1]) / float64(c[0]); grows > 6 { // 4 if the work is linear, 16 if it is quadratic
			t.Errorf("%s: four times as many topologies cost %.1f times as much", name, grows)
		}
	}
}

// allocations is the number of allocations so far, a measure of work that is the same on all
// systems.
func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// TestBatchReadsWhatItWrites checks a topology that imports the package of another topology.
// It has used the new output of the other build before that is written. Afterwards the
// output is an input like others.
func TestBatchReadsWhatItWrites(t *testing.T) {
	p := newProject(t)
	builds := p.many(2)
	builds[1].Inputs.Dirs = append(builds[1].Inputs.Dirs, p.path("t0"))
	builds[0].Outputs[0].Body = []byte("package p // new\n")
	b := p.start()
	b.Watch(Inputs{Dirs: []string{p.path("t0"), p.path("t1"), p.path("model")}})
	p.put("t0/topology_gen.go", "package p // new\n")
	if b.Record(builds[1]) != 0 {
		t.Error("an input that another program has changed is recorded")
	}
	if b.Record(builds...) != 2 {
		t.Fatal("not recorded")
	}
	p.put("t0/topology_gen.go", "package p // old\n")
	for _, build := range builds {
		if _, fresh := p.cache.Start(p.id).Recall(build.Key); fresh {
			t.Errorf("%s is fresh", filepath.Base(filepath.Dir(build.Key)))
		}
	}
}
