// Package protocol holds the messages between analyzers and services that
// chimbuko.proto describes.
package protocol

// Version is the version of the messages. Services refuse others.
const Version = 12

//go:generate go run ./gen
