package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAStdinThatNeverEndsIsLeftWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	reader := ReadStdin(ctx, silent, io.Discard)
	cancel()
	if _, err := io.ReadAll(reader); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context ended", err)
	}
}

func TestStdinIsReadWholeAndNothingIsSaidWhereNobodyTypes(t *testing.T) {
	var stderr bytes.Buffer
	content, err := io.ReadAll(ReadStdin(t.Context(), strings.NewReader("one\ntwo\n"), &stderr))
	if err != nil || string(content) != "one\ntwo\n" || stderr.Len() > 0 {
		t.Errorf("%q, %v, said: %q", content, err, &stderr)
	}
}
