// Command etcd runs an etcd with one member, for tests of clusters whose address table is in etcd. It
// prints the URL for its clients, and ends at the end of its input.
//
//	go run -C bench ./cmd/etcd DIR
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: etcd DIR")
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel = "etcd", os.Args[1], "fatal"
	peer, client := free(), free()
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.InitialCluster = c.Name + "=" + peer.String()
	e, err := embed.StartEtcd(c)
	if err != nil {
		log.Fatal(err)
	}
	<-e.Server.ReadyNotify()
	fmt.Println(client.String())
	_, _ = io.Copy(io.Discard, os.Stdin) // an error ends it too
	e.Close()
}

// free returns an address that was free a moment ago.
func free() url.URL {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}
