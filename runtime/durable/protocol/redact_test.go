package protocol

import "testing"

func TestRedacted(t *testing.T) {
	for address, want := range map[string]string{
		"poll://any@group/pid":             "poll://any@group/pid",
		"poll://uni@group/a?b":             "poll://uni@group/a?b",
		"https://host:8001/a%2Fb":          "https://host:8001/a%2Fb",
		"http://s3cret@host":               "http://xxxxx@host",
		"http://user:s3cret@host/a":        "http://xxxxx@host/a",
		"http://host/a?token=s3cret":       "http://host/a?xxxxx",
		"http://host/a?s3cret#s3cret":      "http://host/a?xxxxx#xxxxx",
		"http://host#s3cret":               "http://host#xxxxx",
		"http://user:s3cret@ho st/":        "an address that is not a URL",
		"http://user:s3/cret@host/":        "an address that is not a URL",
		"":                                 "",
		"http://host/a?b=%zzs3cret#s3%zze": "an address that is not a URL",
	} {
		if got := Redacted(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
	}
}
