// Package wal keeps the log of a RAFT node on disk: entries, state and snapshots.
package wal
