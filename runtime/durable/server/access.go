package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// access decides which requests are answered.
type access struct {
	tokens  [][sha256.Size]byte // hashes, so that a comparison takes the same time for each token
	origins []string
	hosts   []string // names of the server; nil: any name
	usual   string   // the Host of most requests, an address
}

func newAccess(c *Config, address *net.TCPAddr) access {
	a := access{origins: c.Origins, usual: address.String()}
	for _, token := range c.Tokens {
		a.tokens = append(a.tokens, sha256.Sum256([]byte(token)))
	}
	if !c.authenticates() && (address.IP.IsLoopback() || !c.Insecure) {
		a.hosts = []string{"localhost"}
		for _, host := range c.Hosts {
			a.hosts = append(a.hosts, strings.ToLower(host))
		}
		if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
			a.hosts = append(a.hosts, strings.ToLower(host))
		}
	}
	return a
}

// known reports whether a token gives access. Its time does not depend on how much of the
// token is right.
func (a *access) known(token string) bool {
	hash := sha256.Sum256([]byte(token))
	known := 0
	for i := range a.tokens {
		known |= subtle.ConstantTimeCompare(hash[:], a.tokens[i][:])
	}
	return known == 1
}

// granted reports whether a request has a token, in its header or given as another, or
// needs none.
func (a *access) granted(r *http.Request, other string) bool {
	if len(a.tokens) == 0 {
		return true
	}
	if header := r.Header.Get("Authorization"); header != "" {
		const scheme = "bearer "
		return len(header) > len(scheme) && strings.EqualFold(header[:len(scheme)], scheme) && a.known(header[len(scheme):])
	}
	return other != "" && a.known(other)
}

// foreign returns the reason for which a request must not be answered because it may come
// from a web page that the user of this computer visits, or "". The page cannot hide the
// header Origin. Browsers leave it out when a page includes an address as an image or the
// like, and then send Sec-Fetch-Site. A page whose own name was changed to point here
// sends its name as Host.
func (a *access) foreign(r *http.Request) string {
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.Contains(a.origins, origin) {
			return "this server does not answer web pages of this origin"
		}
	} else if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return "this server does not answer requests that a web page of another site makes"
	}
	if a.hosts != nil && r.Host != a.usual && !a.local(r.Host) {
		return "this server is not known by the name in the header Host"
	}
	return ""
}

// local reports whether a Host header has a name of this server, or an IP address. A name
// in DNS may be changed by its owner to point here, an address may not.
func (a *access) local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return slices.Contains(a.hosts, host) || strings.HasSuffix(host, ".localhost")
}

// allow adds the headers that let a browser pass the response to the page, and answers
// the request that browsers send first to ask for it.
func (a *access) allow(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Vary", "Origin")
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
