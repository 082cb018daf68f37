// box is all that the images of the tests hold: one static program that plays others, by the name that it is called by. It copies
// where it is called cp; under every other name it waits until it is told to end. What is to do nothing (--no-op) does so. As box
// itself it does what its first argument says: ask PATH asks the API server, as a Pod does, with the token of its account.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "box:", err)
		os.Exit(1)
	}
}

func run(name string, arguments []string) error {
	fmt.Fprintf(os.Stdout, "playing %s %q\n", name, arguments)
	switch {
	case name == "box" && len(arguments) == 2 && arguments[0] == "ask":
		return ask(arguments[1])
	case name == "cp":
		return copyFile(arguments)
	case slices.Contains(arguments, "--no-op"):
		return nil
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	fmt.Fprintln(os.Stdout, name, "is told to end by", <-end)
	return nil
}

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func ask(path string) (err error) {
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	}
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+server+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	fmt.Fprintln(os.Stdout, "the API server answers", response.Status)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return nil
}

func copyFile(arguments []string) (err error) {
	if len(arguments) < 2 {
		return errors.New("cp needs a source and a destination")
	}
	pair := arguments[len(arguments)-2:]
	from, err := os.Open(pair[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenFile(pair[1], os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
