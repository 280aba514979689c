package gen

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/topogen/topogen/gen/bind"
	"github.com/topogen/topogen/gen/cache"
	"github.com/topogen/topogen/gen/emit"
	"github.com/topogen/topogen/gen/header"
	"github.com/topogen/topogen/gen/plan"
	"github.com/topogen/topogen/gen/verify"
	"github.com/topogen/topogen/gen/write"
	"github.com/topogen/topogen/spec"
	"github.com/topogen/topogen/spec/finding"
)

// Input is one topology file.
type Input struct {
	Path   string // absolute
	Source []byte // its content
}

// Options apply to all files of a run. The zero value is ready to use.
type Options struct {
	// Flags are flags for the go command, such as "-tags=a,b". They override GOFLAGS.
	Flags []string
	// Cache keeps the go command's answers about packages; nil: there is no cache.
	Cache *cache.Cache
	Proto bool // make Result.Proto
}

// Result is the output for one topology file.
type Result struct {
	Findings []finding.Finding // findings about the file and the Go that it names, sorted
	Topology *spec.Topology    // nil if the file could not be read
	Plan     *plan.Plan        // nil if the package was not found
	Dir      string            // absolute folder of the topology file
	Files    []write.File      // files to write: the ports if file and message types have no errors, the wiring if all processors bind
	Keep     []string          // outputs that are not in Files this time but must not be removed, for write.Target
	Missing  []bind.Missing    // declarations that scaffolding could add
	Messages []bind.Struct     // message types that scaffolding could add
	Proto    []byte            // the .proto of its messages, if Options.Proto is set and all processors bind
	Inputs   []string          // absolute paths of the files and folders that were read, for the cache
}

// Generate compiles one topology file. It also returns the findings of the result. If ctx
// ends early, the result has no files and ctx.Err is not nil.
func Generate(ctx context.Context, in Input, options Options) (Result, []finding.Finding) {
	result := GenerateAll(ctx, []Input{in}, options)[0]
	return result, result.Findings
}

// GenerateAll compiles several topology files together, so that shared packages are
// loaded only once. Results are in the order of the inputs.
func GenerateAll(ctx context.Context, in []Input, options Options) []Result {
	results := parse(in)
	bound := bindAll(ctx, results, options)
	for i, b := range bound {
		if b == nil || ctx.Err() != nil {
			continue
		}
		r := &results[i]
		r.Findings = append(r.Findings, r.emit(ctx, b)...)
		r.Inputs = append(r.Inputs, b.Inputs()...) // Verify may have read more files
		if options.Proto && r.Plan != nil && r.Plan.Bound {
			text, findings := b.Proto()
			r.Proto, r.Findings = text, append(r.Findings, findings...)
		}
		b.Done()
	}
	for i := range results {
		results[i].Findings = finding.Sort(results[i].Findings)
	}
	return results
}

// parse reads the files and checks each without Go.
func parse(in []Input) []Result {
	results := make([]Result, len(in))
	for i := range in {
		t, findings := spec.Parse(in[i].Path, in[i].Source)
		results[i] = Result{Topology: t, Findings: findings, Dir: filepath.Dir(in[i].Path), Inputs: []string{in[i].Path}}
	}
	return results
}

// bindAll binds the topologies. A result is nil if there is no topology.
func bindAll(ctx context.Context, results []Result, o Options) []*bind.Result {
	var inputs []bind.Input
	var of []int
	options := bind.Options{Flags: o.Flags, Cache: o.Cache}
	for i := range results {
		if t := results[i].Topology; t != nil {
			options.Imports = append(options.Imports, emit.Imports(t)...)
			inputs = append(inputs, bind.Input{Topology: t, Dir: results[i].Dir})
			of = append(of, i)
		}
	}
	slices.Sort(options.Imports)
	options.Imports = slices.Compact(options.Imports)
	bound := make([]*bind.Result, len(results))
	list, err := bind.Bind(ctx, inputs, options)
	if err != nil {
		return bound // the context has ended
	}
	for j, b := range list {
		r := &results[of[j]]
		bound[of[j]] = b
		r.Plan, r.Missing, r.Messages = plan.Complete(b.Outline, b.Facts), b.Missing, b.Messages
		r.Findings = append(r.Findings, b.Findings...)
	}
	return bound
}

// emit makes the files of a bound topology and verifies them.
func (r *Result) emit(ctx context.Context, b *bind.Result) []finding.Finding {
	if r.Plan == nil {
		return nil
	}
	dir := path.Dir(r.Topology.Output.Value)
	ports, wiring := path.Join(dir, r.Plan.PortsFile), path.Join(dir, r.Plan.Output)
	r.Keep = []string{ports, wiring}
	if !b.PortsReady {
		return nil
	}
	parts, err := emit.Emit(r.Plan, emit.Options{Wiring: r.Plan.Bound, Imports: emit.Imports(r.Topology), Declared: b.Declares(), Imported: b.Imports(), Schema: b.Schema()})
	if err != nil {
		return []finding.Finding{r.internal(err)}
	}
	verified, err := verify.Files(ctx, b, parts)
	if err != nil {
		return nil // the context has ended
	}
	findings := verified.Findings
	if len(verified.Own) > 0 {
		for _, err := range verified.Own {
			findings = append(findings, r.internal(err))
		}
		return findings
	}
	hash := plan.Hash(r.Plan)
	r.Keep = nil
	for _, f := range verified.Files {
		name := path.Join(dir, f.Name)
		source := header.SourceOf(name, filepath.Base(r.Topology.File))
		r.Files = append(r.Files, write.File{Name: name, Body: header.Seal(source, hash, f.Body)})
	}
	if boundary := b.Boundary; boundary != nil && r.Plan.Bound {
		if len(boundary.File) > 0 { // if empty, tags fix all numbers
			r.Files = append(r.Files, write.File{Name: boundary.Name, Body: boundary.File, Kept: true})
		}
		r.Inputs = append(r.Inputs, filepath.Join(r.Dir, boundary.Name))
	}
	if !r.Plan.Bound {
		r.Keep = []string{wiring}
	}
	return findings
}

// internal is the finding for generated code that does not compile. If the user's code
// compiles, this is a bug of topogen.
func (r *Result) internal(err error) finding.Finding {
	return finding.New(finding.GoType, r.Topology.File, finding.Range{}, "",
		fmt.Sprintf("the generated code does not compile: %v", err), "")
}
