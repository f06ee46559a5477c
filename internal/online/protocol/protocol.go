// Package protocol holds the messages between analyzers and services, as
// chimbuko.proto describes them.
package protocol

// Version is that of the messages. A service refuses those of another.
const Version = 4

//go:generate go run ./gen
