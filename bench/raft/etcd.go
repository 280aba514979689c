package raft

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// etcdGroup has three complete servers. Their state is a map with history, kept on disk,
// so they do more than count.
type etcdGroup struct {
	servers []*embed.Etcd
	leader  *clientv3.Client // called without a network
	keys    []string
	value   string
}

func etcdServer(dir string, l Load) (Group, error) {
	configs, err := etcdConfigs(dir)
	if err != nil {
		return nil, err
	}
	g := &etcdGroup{value: strings.Repeat("x", l.Bytes), keys: make([]string, l.Callers)}
	for i := range g.keys {
		g.keys[i] = fmt.Sprint("k", i)
	}
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, len(configs))
	for _, c := range configs {
		go func() { // each server waits for the others
			s, err := embed.StartEtcd(c)
			started <- result{s, err}
		}()
	}
	for range configs {
		r := <-started
		if err = errors.Join(err, r.err); r.err == nil {
			g.servers = append(g.servers, r.server)
		}
	}
	if err == nil {
		err = until("leader", g.findLeader)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *etcdGroup) findLeader() bool {
	for _, s := range g.servers {
		if g.leader == nil && s.Server.Leader() == s.Server.MemberID() {
			g.leader = v3client.New(s.Server)
		}
	}
	return g.leader != nil
}

func etcdConfigs(dir string) (configs []*embed.Config, err error) {
	addresses, err := freeAddresses(2 * len(names))
	if err != nil {
		return nil, err
	}
	var cluster []string
	for i, name := range names {
		c := embed.NewConfig()
		c.Name, c.Dir, c.LogLevel = name, filepath.Join(dir, name), "fatal"
		peer := []url.URL{{Scheme: "http", Host: addresses[2*i]}}
		client := []url.URL{{Scheme: "http", Host: addresses[2*i+1]}}
		c.ListenPeerUrls, c.AdvertisePeerUrls = peer, peer
		c.ListenClientUrls, c.AdvertiseClientUrls = client, client
		c.TickMs, c.ElectionMs = uint(heartbeat/time.Millisecond), uint(election/time.Millisecond)
		c.SnapshotCount = 1 << 40
		cluster = append(cluster, name+"="+peer[0].String())
		configs = append(configs, c)
	}
	for _, c := range configs {
		c.InitialCluster = strings.Join(cluster, ",")
	}
	return configs, nil
}

func (g *etcdGroup) Propose(ctx context.Context, caller int) error {
	_, err := g.leader.Put(ctx, g.keys[caller], g.value)
	return err
}

func (g *etcdGroup) Close() error {
	for _, s := range g.servers {
		s.Close()
	}
	return nil
}
