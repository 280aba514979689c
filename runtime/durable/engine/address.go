package engine

import "strings"

// A route is the meaning of an address.
type route struct {
	kind       routeKind
	group, pid string // of a poll address; pid may be empty with routeAny
}

type routeKind uint8

const (
	routeNone routeKind = iota // no transport knows the address
	routeAny                   // any process of the group, pid first
	routeUni                   // only the process pid
	routePush                  // http or https
)

// parse returns the route of an address: poll://any@group, poll://any@group/pid,
// poll://uni@group/pid, http://... and https://...
func parse(address string) route {
	rest, ok := strings.CutPrefix(address, "poll://")
	if !ok {
		if isPush(address) {
			return route{kind: routePush}
		}
		return route{}
	}
	cast, rest, ok := strings.Cut(rest, "@")
	group, pid, hasPID := strings.Cut(rest, "/")
	switch {
	case !ok || group == "" || hasPID && pid == "":
		return route{}
	case cast == "any":
		return route{routeAny, group, pid}
	case cast == "uni" && pid != "":
		return route{routeUni, group, pid}
	}
	return route{}
}

func isPush(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// reaches reports whether a process of a group receives the messages of an address.
func (r route) reaches(group, pid string) bool {
	return r.group == group && (r.kind == routeAny || r.kind == routeUni && r.pid == pid)
}
