// Command image makes a container image of static binaries, without a registry and without a daemon: an archive that
// `ctr images import`, `docker load` and `skopeo copy docker-archive:` read. The same binaries and licences make the same archive.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
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
	licenses := flag.String("licenses", "", "directory with the licences of what the binaries carry; required")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: image -o ARCHIVE -tag NAME:TAG -licenses DIRECTORY [-arch ARCHITECTURE] BINARY...\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *output == "" || *tag == "" || *licenses == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*output, *tag, *architecture, *licenses, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(output, tag, architecture, licenses string, binaries []string) error {
	reference, err := name.NewTag(tag)
	if err != nil {
		return fmt.Errorf("reading -tag: %w", err)
	}
	content, err := layerOf(binaries, licenses)
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

// layerOf is a layer with the binaries at the root, the licences in a directory, and nothing else.
func layerOf(binaries []string, licenses string) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, binary := range binaries {
		if err := pack(archive, filepath.Base(binary), binary, 0o555); err != nil {
			return nil, err
		}
	}
	// In the order of their names, whatever the file system's is.
	err := filepath.WalkDir(licenses, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(licenses, path)
		if err != nil {
			return err
		}
		return pack(archive, "licenses/"+filepath.ToSlash(name), path, 0o444)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the licences: %w", err)
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("closing the layer: %w", err)
	}
	return buffer.Bytes(), nil
}

// pack adds a file as it is, of no owner and no time: they would be this machine's.
func pack(archive *tar.Writer, name, path string, mode int64) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("packing %s: %w", path, err)
	}
	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("packing %s: %w", path, err)
	}
	return nil
}
