package emit

import (
	"bytes"
	"runtime"
	"sync"

	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/wire"
)

// processorsPerPart is the number of processors in a part: enough work to be worth
// a goroutine, and few enough to keep all CPUs busy.
const processorsPerPart = 32

// Options say what to emit.
type Options struct {
	// Wiring requests the second file, topology_gen.go. It requires that every processor binds.
	Wiring bool
	// Imports must be what the function Imports returns for the topology.
	Imports []string
	// Declared reports whether the user's files declare a name at package level.
	// Imports and unexported names avoid such names. nil: there are none.
	Declared func(name string) bool
	// Imported reports whether one of these files imports a package under the name.
	// Unexported names avoid such names. nil: there are none.
	Imported func(name string) bool
	// Schema is the encoding of messages to and from processes; nil: there are none.
	Schema *wire.Schema
}

// File is a file in parts. Each part is a complete Go file with the imports that it
// needs. The file has the declarations of all parts in this order.
type File struct {
	Name  string // base name
	Parts [][]byte
}

// Emit generates the ports and, if Options.Wiring is set, the wiring. Parts are not
// formatted. An error means that a name in the plan is invalid, which earlier stages
// exclude.
func Emit(p *plan.Plan, o Options) ([]File, error) {
	m, err := newModel(p, o)
	if err != nil {
		return nil, err
	}
	ports, err := m.parts(m.ports())
	if err != nil {
		return nil, err
	}
	m.buildConstant = buildConstantOf(ports)
	ports[0] = append(ports[0], m.declareBuildConstant()...)
	files := []File{{Name: p.PortsFile, Parts: ports}}
	if !o.Wiring {
		return files, nil
	}
	wiring, err := m.parts(m.wiring())
	if err != nil {
		return nil, err
	}
	return append(files, File{Name: p.Output, Parts: wiring}), nil
}

// parts runs the jobs in parallel.
func (m *model) parts(jobs []job) ([][]byte, error) {
	parts, errs := make([][]byte, len(jobs)), make([]error, len(jobs))
	Parallel(len(jobs), func(i int) { parts[i], errs[i] = jobs[i].source(m) })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// job writes one part.
type job func(*part)

func (j job) source(m *model) (source []byte, err error) {
	defer recoverBadName(&err)
	p := &part{model: m, file: m.scope.file(m.plan)}
	j(p)
	var b bytes.Buffer
	err = p.file.Render(&b)
	return b.Bytes(), err
}

// each appends jobs that write something for all processors, in order.
func (m *model) each(jobs []job, write func(*part, *processor)) []job {
	for from := 0; from < len(m.processors); from += processorsPerPart {
		group := m.processors[from:min(from+processorsPerPart, len(m.processors))]
		jobs = append(jobs, func(p *part) {
			for _, q := range group {
				write(p, q)
			}
		})
	}
	return jobs
}

// Parallel calls do for 0 … n-1 on all CPUs.
func Parallel(n int, do func(int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			do(i)
			<-slots
		})
	}
	group.Wait()
}
