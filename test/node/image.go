package node

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Image is a container image made from scratch: one static program and nothing else but /tmp.
type Image struct {
	// Name is the whole reference, with a tag that is not latest: the kubelet looks for no newer one then.
	Name string
	// Binary is the program's path on this machine. It is the image's entry point, at the root.
	Binary string
	// Paths are further places inside the image where the program is found, under other names.
	Paths []string
	// Files are small files besides, by their path.
	Files map[string]string
}

// imageTime dates everything in an image, so that the same content makes the same image.
var imageTime = time.Unix(0, 0)

// Import makes the images and gives them to containerd.
func (n *Node) Import(ctx context.Context, images ...Image) error {
	for _, image := range images {
		archive := filepath.Join(n.Dir(), "image.tar")
		if err := image.write(archive); err != nil {
			return fmt.Errorf("making the image %s: %w", image.Name, err)
		}
		if output, err := n.ctr(ctx, "images", "import", archive); err != nil {
			return fmt.Errorf("importing the image %s: %w\n%s", image.Name, err, output)
		}
		if err := os.Remove(archive); err != nil {
			return err
		}
	}
	return nil
}

// ctr is containerd's own client.
func (n *Node) ctr(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "ctr", append([]string{"--address", n.socket(), "--namespace", "k8s.io"}, arguments...)...)
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// write makes the archive in the form of `docker save`, with one layer.
func (i Image) write(path string) error {
	layer, err := i.layer()
	if err != nil {
		return err
	}
	layerSum := sum(layer)
	configuration, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": imageTime.UTC(),
		"config": map[string]any{"Entrypoint": []string{"/" + filepath.Base(i.Binary)}, "Env": []string{"PATH=/usr/bin:/"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layerSum}},
	})
	if err != nil {
		return err
	}
	configurationName := sum(configuration) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": configurationName, "RepoTags": []string{i.Name}, "Layers": []string{layerSum + ".tar"},
	}})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, entry := range []struct {
		name    string
		content []byte
	}{{configurationName, configuration}, {layerSum + ".tar", layer}, {"manifest.json", manifest}} {
		if err := addFile(writer, entry.name, 0o644, entry.content); err != nil {
			return err
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o600)
}

func (i Image) layer() ([]byte, error) {
	program, err := os.ReadFile(i.Binary)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, ModTime: imageTime}); err != nil {
		return nil, err
	}
	base := filepath.Base(i.Binary)
	if err := addFile(writer, base, 0o755, program); err != nil {
		return nil, err
	}
	for _, path := range i.Paths {
		header := &tar.Header{Typeflag: tar.TypeLink, Name: strings.TrimPrefix(path, "/"), Linkname: base, Mode: 0o755, ModTime: imageTime}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	for path, content := range i.Files {
		if err := addFile(writer, strings.TrimPrefix(path, "/"), 0o644, []byte(content)); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}

func addFile(writer *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: imageTime}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(content)
	return err
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
