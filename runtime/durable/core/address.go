package core

import (
	"net/url"
	"strings"
)

// badAddress returns why a text is not an address, or "". Addresses are
//
//	poll://any@group        any process of the group
//	poll://any@group/pid    this process if it is connected, else any of the group
//	poll://uni@group/pid    only this process
//	http://host/path        a server that accepts messages by POST, also https
func badAddress(field, address string) string {
	if bad := badID(field, address); bad != "" {
		return bad
	}
	if rest, ok := strings.CutPrefix(address, "poll://"); ok {
		cast, rest, _ := strings.Cut(rest, "@")
		group, pid, hasPID := strings.Cut(rest, "/")
		if group == "" || hasPID && pid == "" || cast != "any" && (cast != "uni" || pid == "") {
			return field + " must be poll://any@group, poll://any@group/pid or poll://uni@group/pid"
		}
		return ""
	}
	// A driver finds the transport by the text: a scheme in capital letters has none.
	known := strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
	if u, err := url.Parse(address); !known || err != nil || u.Host == "" {
		return field + " must be an address that begins with poll://, http:// or https://"
	}
	return ""
}
