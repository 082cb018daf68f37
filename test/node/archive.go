package node

import (
	"context"
	"fmt"
)

// ImportArchive gives containerd the images of an archive, as `make image` writes one.
func (n *Node) ImportArchive(ctx context.Context, path string) error {
	if output, err := n.ctr(ctx, "images", "import", path); err != nil {
		return fmt.Errorf("importing the images of %s: %w\n%s", path, err, output)
	}
	return nil
}
