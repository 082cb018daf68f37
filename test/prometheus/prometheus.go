// Package prometheus runs a real Prometheus on loopback for tests.
package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"sigs.k8s.io/yaml"

	"github.com/ttlab/vmwarden/test/process"
)

const (
	// interval is how often it scrapes and evaluates rules: as often as it can, since somebody waits for it.
	interval = "1s"
	// startTimeout bounds the start.
	startTimeout = 30 * time.Second
	// portTries is how often another port is tried when somebody took the one that had been free.
	portTries = 5
)

// Job is something that is scraped.
type Job struct {
	Name string `json:"job_name"`
	// HonorLabels keeps the labels of the metrics where Prometheus has one of the same name.
	HonorLabels bool     `json:"honor_labels"`
	Scheme      string   `json:"scheme,omitempty"`
	TLS         *TLS     `json:"tls_config,omitempty"`
	Targets     []Target `json:"static_configs"`
}

// Target are addresses, as host:port.
type Target struct {
	Addresses []string `json:"targets"`
}

// TLS names the files by which a job signs in.
type TLS struct {
	CAFile   string `json:"ca_file"`
	CertFile string `json:"cert_file"`
	KeyFile  string `json:"key_file"`
}

// Server is a running Prometheus.
type Server struct {
	group *process.Group
	// API asks it.
	API prometheusv1.API
}

// Start starts a Prometheus that scrapes the jobs and evaluates the rules of these files. The context bounds the start alone.
func Start(ctx context.Context, rules []string, jobs ...Job) (*Server, error) {
	program, err := locate(ctx)
	if err != nil {
		return nil, err
	}
	group, err := process.NewGroup("", "vmwarden-prometheus")
	if err != nil {
		return nil, err
	}
	s := &Server{group: group}
	if err := s.start(ctx, program, rules, jobs); err != nil {
		return nil, errors.Join(fmt.Errorf("starting Prometheus: %w", err), s.Stop())
	}
	return s, nil
}

// Stop ends it and leaves nothing behind.
func (s *Server) Stop() error { return s.group.Close() }

func (s *Server) start(ctx context.Context, program string, rules []string, jobs []Job) error {
	configuration, err := yaml.Marshal(map[string]any{
		"global":         map[string]string{"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
		"rule_files":     rules,
		"scrape_configs": jobs,
	})
	if err != nil {
		return fmt.Errorf("writing its configuration: %w", err)
	}
	file := filepath.Join(s.group.Directory(), "prometheus.yaml")
	if err := os.WriteFile(file, configuration, 0o600); err != nil {
		return fmt.Errorf("writing its configuration: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for try := 1; ; try++ {
		port, err := process.FreePort()
		if err != nil {
			return err
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		client, err := api.NewClient(api.Config{Address: "http://" + address})
		if err != nil {
			return fmt.Errorf("making the client: %w", err)
		}
		s.API = prometheusv1.NewAPI(client)
		running, err := s.group.Start(ctx, process.Spec{Name: "prometheus", Path: program, Args: []string{
			"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(s.group.Directory(), "data"), "--web.listen-address=" + address,
		}})
		if err != nil {
			return err
		}
		err = running.AwaitReady(ctx, func(ctx context.Context) error {
			_, err := s.API.Buildinfo(ctx)
			return err
		})
		if err == nil || try == portTries || !running.PortTaken() {
			return err
		}
	}
}

// locate finds the program, or has it taken out of Debian's package.
func locate(ctx context.Context) (string, error) {
	root, err := output(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		return "", fmt.Errorf("finding the module's root: %w", err)
	}
	program, err := output(exec.CommandContext(ctx, filepath.Join(root, "hack", "prometheus-program.sh"), "prometheus"))
	if err != nil {
		return "", fmt.Errorf("finding Prometheus: %w", err)
	}
	return program, nil
}

func output(command *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
