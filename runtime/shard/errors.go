package shard

import "errors"

// ErrConfiguration: a configuration does not give each shard to one worker. The
// error says which shard.
var ErrConfiguration = errors.New("shard: not a configuration")
