package protocol

import (
	"net/url"
	"strings"
)

// Redacted returns an address or the URL of a server as logs and errors may show it: without
// user, password, query and fragment, because these may be secrets.
func Redacted(address string) string {
	if strings.HasPrefix(address, "poll://") { // its user is any or uni
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is not a URL"
	}
	if u.User != nil {
		u.User = url.User(redacted)
	}
	if u.RawQuery != "" {
		u.RawQuery = redacted
	}
	if u.Fragment != "" {
		u.Fragment, u.RawFragment = redacted, ""
	}
	return u.String()
}

const redacted = "xxxxx" // as url.URL.Redacted writes it
