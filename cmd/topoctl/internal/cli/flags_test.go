package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagTests has a test for each flag, which fails if the flag is ignored: a script that gives the
// flag, or a function that observes the value that the command uses. A flag that several commands
// have, with the same text, is one flag.
var flagTests = map[string]func(t *testing.T, flag string){
	"certs --client":                        script("certs"),
	"certs --days":                          script("certs"),
	"certs --force":                         script("certs"),
	"certs --nodes":                         script("certs"),
	"certs --operator":                      script("certs"),
	"certs --topology":                      script("certs"),
	"certs --trust-domain":                  script("rafttls"),
	"cluster --addr":                        script("cluster"),
	"cluster --ca":                          script("rafttls"),
	"cluster --cert":                        script("rafttls"),
	"cluster --key":                         script("rafttls"),
	"cluster --timeout":                     script("cluster"),
	"cluster forget --force":                script("cluster"),
	"cluster forget --json":                 script("cluster"),
	"cluster table --node":                  script("cluster"),
	"cluster table --processor":             script("cluster"),
	"durable backup --force":                script("durablebackup"),
	"durable backup --request-timeout":      script("durablebackup"),
	"durable backup --server":               script("durablebackup"),
	"durable backup --store":                script("durablebackup"),
	"durable backup --token-file":           script("durablebackup"),
	"durable clock --set":                   script("durableclock"),
	"durable dev --debug":                   script("durableserve"),
	"durable dev --metrics":                 script("durableserve"),
	"durable invoke --arg":                  script("durabletasks"),
	"durable invoke --delay":                script("durabletasks"),
	"durable invoke --func":                 script("durabletasks"),
	"durable invoke --json-args":            script("durabletasks"),
	"durable invoke --tag":                  script("durabletasks"),
	"durable invoke --target":               script("durabletasks"),
	"durable invoke --timeout":              script("durabletasks"),
	"durable invoke --version":              script("durabletasks"),
	"durable invoke --wait":                 script("durabletasks"),
	"durable promises --ca":                 script("durableserve"),
	"durable promises --cert":               script("durableserve"),
	"durable promises --key":                script("durableserve"),
	"durable promises --request-timeout":    script("durable"),
	"durable promises create --data":        script("durable"),
	"durable promises search --cursor":      script("durable"),
	"durable schedules search --cursor":     script("durableschedules"),
	"durable tasks search --cursor":         script("durabletasks"),
	"durable promises create --delay":       script("durable"),
	"durable promises create --header":      script("durable"),
	"durable promises create --raw":         script("durable"),
	"durable promises create --target":      script("durabletree"),
	"durable promises create --timeout":     script("durable"),
	"durable promises reject --data":        script("durabletree"),
	"durable promises search --limit":       script("durable"),
	"durable promises search --state":       script("durable"),
	"durable promises search --tag":         script("durable"),
	"durable restore --keep-old":            script("durablebackup"),
	"durable restore --store":               script("durablebackup"),
	"durable schedules create --cron":       script("durableschedules"),
	"durable schedules create --data":       script("durableschedules"),
	"durable schedules create --promise-id": script("durableschedules"),
	"durable schedules create --tag":        script("durableschedules"),
	"durable schedules create --timeout":    script("durableschedules"),
	"durable serve --host":                  serves("--host shop", func(d *DurableServe) any { return d.Server.Hosts }, []string{"shop"}),
	"durable serve --insecure":              serves("--insecure", func(d *DurableServe) any { return d.Server.Insecure }, true),
	"durable serve --listen":                serves("--listen 127.0.0.1:7", func(d *DurableServe) any { return d.Server.Listen }, "127.0.0.1:7"),
	"durable serve --max-body":              serves("--max-body 7", func(d *DurableServe) any { return d.Server.BodyMax }, 7),
	"durable serve --max-connections":       serves("--max-connections 7", func(d *DurableServe) any { return d.Server.ConnectionsMax }, 7),
	"durable serve --max-requests":          serves("--max-requests 7", func(d *DurableServe) any { return d.Server.RequestsMax }, 7),
	"durable serve --max-store":             serves("--max-store 7", func(d *DurableServe) any { return d.Store.MaxBytes }, int64(7)),
	"durable serve --max-streams":           serves("--max-streams 7", func(d *DurableServe) any { return d.Engine.ConnectionsMax }, 7),
	"durable serve --node":                  script("durablegroup"),
	"durable serve --origin":                serves("--origin https://shop", func(d *DurableServe) any { return d.Server.Origins }, []string{"https://shop"}),
	"durable serve --peers":                 script("durablegroup"),
	"durable serve --retry-timeout":         serves("--retry-timeout 7s", func(d *DurableServe) any { return d.Engine.Core.RetryTimeout }, int64(7_000)),
	"durable serve --set-clock-back": serves("--set-clock-back --peers n1=127.0.0.1:7 --node n1 --url http://127.0.0.1:8", func(d *DurableServe) any {
		c, err := d.Group.config(d)
		return c.SetBack && err == nil
	}, true),
	"durable serve --stop-timeout":  serves("--stop-timeout 7s", func(d *DurableServe) any { return d.Stop }, 7*time.Second),
	"durable serve --store":         script("durable"),
	"durable serve --strict":        serves("--strict", func(d *DurableServe) any { return d.Engine.Core.Strict }, true),
	"durable serve --tls-ca":        script("durableserve"),
	"durable serve --tls-cert":      script("durableserve"),
	"durable serve --tls-key":       script("durableserve"),
	"durable serve --token-file":    script("durablebackup"),
	"durable serve --trust-file":    serves("--trust-file", func(d *DurableServe) any { return d.Store.TrustFile }, true),
	"durable serve --url":           script("durablegroup"),
	"durable tasks acquire --pid":   script("durabletasks"),
	"durable tasks acquire --ttl":   script("durabletasks"),
	"durable tasks fence --action":  script("durabletasks"),
	"durable tasks fence --version": script("durabletasks"),
	"durable tasks fulfill --state": script("durabletasks"),
	"durable tasks search --state":  script("durabletasks"),
	"durable tasks suspend --await": script("durabletasks"),
	"durable tree --json":           script("durabletree"),
	"durable tree --limit":          script("durabletree"),
	"durable tree --raw":            script("durabletree"),
	"errors --format":               script("errors"),
	"errors --full":                 script("errors"),
	"raft --ca":                     script("rafttls"),
	"raft --group":                  script("raft"),
	"raft --key":                    script("rafttls"),
	"raft add --force":              script("raft"),
	"raft add --learner":            script("raft"),
	"raft address --force":          script("raft"),
	"raft promote --force":          script("raft"),
	"raft recover --address":        script("raftrestore"),
	"raft recover --node":           script("raftrestore"),
	"raft recover --to":             script("raftrestore"),
	"raft recover --yes":            script("raftrestore"),
	"raft remove --force":           script("raft"),
	"raft rename --force":           script("raft"),
}

// TestEachFlagHasATest fails if a command has a flag without a test, or if a test has no flag.
func TestEachFlagHasATest(t *testing.T) {
	var chosen command
	tested, texts := map[string]bool{}, map[string]string{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			name := strings.TrimPrefix(cmd.CommandPath(), "topoctl ") + " --" + f.Name
			texts[name] = f.Name + ": " + f.Usage
			tested[texts[name]] = tested[texts[name]] || flagTests[name] != nil
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&chosen))
	for name, text := range texts {
		if !tested[text] {
			t.Errorf("%s has no test that observes its effect", name)
		}
	}
	for name, test := range flagTests {
		if texts[name] == "" {
			t.Errorf("%s is not a flag", name)
			continue
		}
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

// script stands for a script in testdata/script. It fails if the script does not give the flag to
// the command.
func script(name string) func(t *testing.T, flag string) {
	return func(t *testing.T, flag string) {
		text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "script", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		path, flag, _ := strings.Cut(flag, " --")
		words := strings.Fields(path)
		line := regexp.MustCompile(`(?m)^.*\b` + words[len(words)-1] + ` .*--` + flag + `\b`)
		if !line.Match(text) {
			t.Errorf("%s has no command with this flag", name)
		}
	}
}

// serves gives flags to a server of durable promises, and compares what it uses.
func serves(arguments string, got func(d *DurableServe) any, want any) func(*testing.T, string) {
	return func(t *testing.T, flag string) {
		c, err := parse(append([]string{"durable", "serve", "--store", "x"}, strings.Fields(arguments)...), Streams{})
		if err != nil {
			t.Fatal(err)
		}
		d := c.(DurableServe)
		if err := d.configure(slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		if _, name, _ := strings.Cut(flag, " --"); !strings.Contains(arguments, "--"+name) {
			t.Errorf("--%s is not in %s", name, arguments)
		}
		if got := got(&d); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
