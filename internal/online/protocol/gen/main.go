// Command gen writes the Go code of the messages from chimbuko.proto.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	source = "chimbuko.proto"
	target = "chimbuko.pb.go"
)

func main() {
	code, err := generate(context.Background())
	if err == nil {
		err = os.WriteFile(target, code, 0o644) //nolint:gosec // source code is read by all
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // this is a main
	}
}

// generate returns the code of the messages in the working directory.
func generate(ctx context.Context) ([]byte, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	// The comments are left out of the code: they are in the source.
	descriptor := protodesc.ToFileDescriptorProto(files[0])
	descriptor.SourceCodeInfo = nil
	name := source
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name}, ProtoFile: []*descriptorpb.FileDescriptorProto{descriptor},
	})
	if err != nil {
		return nil, err
	}
	internal_gengo.GenerateFile(plugin, plugin.Files[0])
	answer := plugin.Response()
	if answer.Error != nil {
		return nil, fmt.Errorf("%s: %s", source, answer.GetError())
	}
	return []byte(answer.File[0].GetContent()), nil
}
