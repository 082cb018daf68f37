// Command image makes a container image of static binaries, without a registry and without a daemon: an archive that
// `ctr images import`, `docker load` and `skopeo copy docker-archive:` read. The same binaries make the same archive.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nobody is the user that everything runs as; the chart's Pods ask for the same.
const nobody = "65532:65532"

func main() {
	output := flag.String("o", "", "archive to write; required")
	tag := flag.String("tag", "", "name and tag of the image; required")
	architecture := flag.String("arch", "amd64", "architecture that the binaries are for")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: image -o ARCHIVE -tag NAME:TAG [-arch ARCHITECTURE] BINARY...\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *output == "" || *tag == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*output, *tag, *architecture, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(output, tag, architecture string, binaries []string) error {
	reference, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("reading -tag: %w", err)
	}
	content, err := layerOf(binaries)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return fmt.Errorf("making the layer: %w", err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("adding the layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading the image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", architecture, v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{User: nobody, Entrypoint: []string{"/" + filepath.Base(binaries[0])}}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return fmt.Errorf("writing the image's configuration: %w", err)
	}
	if err := tarball.WriteToFile(output, reference, image); err != nil {
		return fmt.Errorf("writing %s: %w", output, err)
	}
	return nil
}

// layerOf is a layer with the binaries at the root, and nothing else.
func layerOf(binaries []string) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, binary := range binaries {
		executable, err := os.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("reading a binary: %w", err)
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.Base(binary), Mode: 0o555, Size: int64(len(executable)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", binary, err)
		}
		if _, err := archive.Write(executable); err != nil {
			return nil, fmt.Errorf("packing %s: %w", binary, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("closing the layer: %w", err)
	}
	return buffer.Bytes(), nil
}
