// Package protocol holds the messages between analyzers and services that
// chimbuko.proto describes.
package protocol

import "github.com/chimbuko/chimbuko/internal/base/fileformat"

// Version is the version of the messages. Services refuse others.
const Version = 12

// Format is the format of messages in files: snapshots of the parameter server and streams of records.
var Format = fileformat.Format{Number: Version, Oldest: Version, Renew: "finish the run with the chimbuko that began it"}

//go:generate go run ./gen
